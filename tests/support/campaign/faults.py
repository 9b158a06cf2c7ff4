"""The faults of the brokers and of the tool, by name."""

from __future__ import annotations

from tests.support.campaign import cluster_faults, tool_faults
from tests.support.campaign.fault import Fault

FAULTS = {
    "coordinator killed": Fault(happens=cluster_faults.coordinator_killed),
    "coordinator hangs": Fault(happens=cluster_faults.coordinator_hangs),
    "coordinator restarted": Fault(happens=cluster_faults.coordinator_restarted),
    "coordinator moved": Fault(happens=cluster_faults.coordinator_moved),
    "offsets topic under min ISR": Fault(happens=cluster_faults.offsets_topic_under_min_isr),
    "cluster gone": Fault(happens=cluster_faults.cluster_gone),
    "rolling restart": Fault(happens=cluster_faults.rolling_restart),
    "partition without leader": Fault(happens=cluster_faults.partition_without_leader, needs_only_on=True),
    "connection cut in a response": Fault(happens=cluster_faults.connection_cut, proxied=True),
    "connections slow": Fault(happens=cluster_faults.connections_slow, proxied=True),
    "tool killed": Fault(happens=tool_faults.tool_killed),
    "tool killed at a hung coordinator": Fault(happens=tool_faults.tool_killed_at_a_hung_coordinator),
    "second client crashes": Fault(happens=tool_faults.second_client_crashes),
    "second client hangs": Fault(happens=tool_faults.second_client_hangs),
    "disk full": Fault(happens=tool_faults.disk_full, on_small_disk=True, also_exits=(2,)),
    "run directory read-only": Fault(happens=tool_faults.run_directory_read_only, also_exits=(2,)),
    "clock jumps": Fault(happens=tool_faults.clock_jumps),
    "two signals": Fault(happens=tool_faults.two_signals, also_exits=(130,)),
}
