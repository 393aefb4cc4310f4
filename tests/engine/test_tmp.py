from cockpit.model.fleet import Member
from tests.engine.fleet_driver import *
from tests.builders import *
def test_x():
    f=FleetDriver([Member(name="a",**COUNTING),Member(name="b",**RESERVING)],{"a":[a_node("n1",cards=8),a_node("n2",cards=8)],"b":[a_node("n1",cards=8)]})
    f.members["a"].submit(*[a_spec(f"l{i}",nodes=1,card_milli=5000) for i in (1,2)])
    f.members["b"].submit(*[a_spec(f"l{i}",nodes=1,card_milli=4000) for i in (1,2)])
    f.settle()
    (j,)=f.submit(a_spec(nodes=1,card_milli=6000))
    (j2,)=f.submit(a_spec("j2",nodes=1,card_milli=3000))
    f.settle()
    print(f.job(j).state, f.job(j).attempt)
    print(f.job(j2).state, f.job(j2).attempt)
    f.after(31000)
    print(f.job(j).state, f.job(j).attempt)
    print(f.job(j2).state, f.job(j2).attempt)
    for r in f.journal[3:]: print(r.at-NOON, r.body)
    assert 0
