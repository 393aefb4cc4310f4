"""Which events ask more of the host than to be written down and applied."""

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
"""On the disk before a container is made or removed: else, after a power cut, it would be made and run once more."""
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
"""What lengthens the queue, changes what waits or its order, or frees something. Nothing else lets another job start: a
cycle leaves nothing that it could have placed."""
