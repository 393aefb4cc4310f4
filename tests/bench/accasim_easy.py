"""Run by AccaSim's own Python: a log under EASY; prints the jobs that it dispatched, and how many each second."""

import collections
import collections.abc
import json
import sys
from pathlib import Path
from time import perf_counter


def main(log: str, nodes: str, folder: str) -> None:
    collections.Mapping = collections.abc.Mapping  # where it still looks for it
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import EASYBackfilling
    from accasim.base.simulator_class import Simulator

    system = Path(folder) / "system.json"
    groups = {"groups": {"node": {"core": 1}}, "resources": {"node": int(nodes)}}
    system.write_text(json.dumps({**groups, "equivalence": {"processor": {"core": 1}}, "start_time": 0}))
    quiet = {"scheduling_output": False, "statistics_output": False, "show_statistics": False}
    simulator = Simulator(log, str(system), EASYBackfilling(FirstFit()), RESULTS_FOLDER_PATH=folder, **quiet)
    before = perf_counter()
    simulator.start_simulation()
    sys.stdout.write(f"{simulator.dispatched_jobs} {simulator.dispatched_jobs / (perf_counter() - before)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
