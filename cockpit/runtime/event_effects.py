"""The events after which the host does more than journal and apply them."""

from __future__ import annotations

from cockpit.model import events

MOVES_CONTAINERS = (
    events.JobPlaced,
    events.PrecheckPassed,
    events.ReplicaStaged,
    events.PrologFailed,
    events.JobEnded,
    events.JobRequeued,
    events.BindingGivenUp,
    events.HoldEnded,
    events.WorkersAdded,
    events.WorkersLeft,
    events.WorkerReplaced,
)
"""Events that must be on the disk before a container is made or removed. Otherwise a power cut could lose them, and the
container would be made and run a second time."""
RECONSIDERED_AFTER = (
    events.JobSubmitted,
    events.JobHeld,
    events.JobReleased,
    events.JobEdited,
    events.DependencyMet,
    events.AgeBegan,
    events.PrioritySet,
    events.TimeLimitSet,
    events.JobEnded,
    events.JobRequeued,
    events.WorkersLeft,
    events.BindingGivenUp,
    events.OthersHeld,
    events.JobSuspended,
    events.JobResumed,
    events.HoldExtended,
    events.HoldEnded,
    events.PrologFailed,
    events.PrecheckFailed,
    events.NodesChanged,
    events.NodeDrained,
    events.NodeResumed,
    events.ClusterConfigured,
    events.AccountsChanged,
    events.ReservationMade,
    events.ReservationEnded,
    events.QuotaApplied,
    events.QuotaRemoved,
    events.UsageDecayed,
)
"""Events after which a scheduling pass runs: they add to the queue, change queued jobs or their order, or free
resources. No other event can let a job start, since each pass places every job that fits."""
