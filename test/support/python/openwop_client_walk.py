"""A walk with the protocol's own Python client: the team of examples/team, from its start to its end.

Arguments: base URL, API key. Prints what it saw as one JSON document.
"""

import json
import sys
import time

from openwop_client import (
    CancelRunRequest,
    CreateRunRequest,
    OpenwopClient,
    ResolveInterruptRequest,
    WopError,
    agent_tool_called_payload,
    is_agent_decided,
    is_agent_tool_called,
)

LIMIT_S = 60
PROBE_S = 0.1

base_url, api_key = sys.argv[1:3]
client = OpenwopClient(base_url=base_url, api_key=api_key)


def reached(run_id, *statuses):
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        snapshot = client.runs_get(run_id)
        if snapshot.status in statuses:
            return snapshot
        time.sleep(PROBE_S)
    raise TimeoutError(f"{run_id} is not {statuses}")


def refused(call):
    try:
        call()
    except WopError as error:
        return {"status": error.status, "code": error.envelope.error if error.envelope else None}
    return None


seen = {"version": client.discovery_capabilities().protocolVersion}
seen["agents"] = [agent.agentId for agent in client.agents_list() or []]
seen["workflow"] = client.workflows_get("research")["id"]

created = client.runs_create(CreateRunRequest(workflowId="research"), idempotency_key="walk-1")
again = client.runs_create(CreateRunRequest(workflowId="research"), idempotency_key="walk-1")
run_id = created.runId
seen["once"] = again.runId == run_id

events = []
children = []
for event in client.runs_events(run_id, stream_mode="debug", timeout_seconds=LIMIT_S):
    events.append(event)
    if event.type == "node.dispatched":
        children.append(event.payload["childRunId"])
    if len(children) == 2:
        break

seen["called"] = [agent_tool_called_payload(e)["toolName"] for e in events if is_agent_tool_called(e)]
seen["ancestry"] = []
for child in children:
    asked = reached(child, "waiting-approval")
    parent = client.runs_ancestry(child).parent
    seen["ancestry"].append({"isParent": parent.runId == run_id, "cause": parent.cause})
    client.interrupts_resolve_by_run(
        child,
        asked.currentNodeId,
        ResolveInterruptRequest(resumeValue={"action": "accept"}),
        idempotency_key=f"walk-{child}",
    )
seen["root"] = client.runs_ancestry(run_id).parent

# Where the first look at the events was broken off, without a gap.
last = str(events[-1].sequence)
for event in client.runs_events(
    run_id, stream_mode="debug", last_event_id=last, timeout_seconds=LIMIT_S
):
    events.append(event)
seen["dense"] = [event.sequence for event in events] == list(range(len(events)))
seen["decided"] = sum(1 for event in events if is_agent_decided(event))
seen["end"] = [events[-1].type, reached(run_id, "completed").status]
polled = client.runs_poll_events(run_id, last_sequence=events[-2].sequence)
seen["polled"] = [polled.isComplete, [event.type for event in polled.events]]

other = client.runs_create(CreateRunRequest(workflowId="research")).runId
client.runs_cancel(other, CancelRunRequest(reason="The walk is over."))
seen["cancelled"] = reached(other, "cancelled").status
seen["nothing"] = refused(lambda: client.runs_get("run-of-nobody"))

json.dump(seen, sys.stdout)
