"""What schemathesis cannot guess: half of the valid requests name runs, nodes, workflows and agents that exist, so that
the fuzz gets behind `404`. The names come from test/support/openapi-fuzz.ts by the environment."""

import json
import os
import random
import re
import time
import urllib.request

import schemathesis

KNOWN = json.loads(os.environ["OPENWOP_FUZZ_KNOWN"])
# A run that asks for what this host does not have is refused before anything is tried.
REFUSED_FIELDS = ("agentId", "tenantId", "callbackUrl", "mode", "evalSuiteRef", "configurable")
POLL_SECONDS = 1
# As the document has it: a longer one is refused, which is tried as it is.
LONGEST_POLL_SECONDS = 60
# A run comes to its question within this many looks.
WAIT_ROUNDS = 100
WAIT_SECONDS = 0.1


def waiting_run():
    run_id = api("POST", "/v1/runs", {"workflowId": "approval"})["runId"]
    for _ in range(WAIT_ROUNDS):
        if api("GET", f"/v1/runs/{run_id}")["status"] == "waiting-approval":
            break
        time.sleep(WAIT_SECONDS)
    return run_id


def api(method, path, body=None):
    request = urllib.request.Request(
        os.environ["OPENWOP_FUZZ_URL"] + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["OPENWOP_FUZZ_KEY"],
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def with_short_wait(query):
    """A wait that the host honours may outlive this client's patience, also where something else is wrong."""
    asked = str(query.get("timeout", POLL_SECONDS))
    honoured = re.fullmatch(r"[0-9]{1,9}", asked) and POLL_SECONDS <= int(asked) <= LONGEST_POLL_SECONDS
    return {**query, "timeout": POLL_SECONDS} if honoured else query


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None:
        return
    operation = case.operation.definition.raw.get("operationId")
    if operation == "pollRunEvents":
        case.query = with_short_wait(case.query or {})
    if not case.meta.generation.mode.is_positive:
        return
    if random.random() < 0.5:
        return
    for name in case.path_parameters or {}:
        if name in KNOWN:
            case.path_parameters[name] = random.choice(KNOWN[name])
    if operation in ("diffRun", "compareRuns"):
        case.query = {**(case.query or {}), "against": random.choice(KNOWN["runId"])}
    if operation == "resolveInterrupt" and random.random() < 0.5:
        # Of its own: the runs that are known may have been cancelled by now.
        case.path_parameters.update(runId=waiting_run(), nodeId="gate")
        case.body = {"resumeValue": {"action": "accept"}}
    if operation == "createRun" and isinstance(case.body, dict):
        kept = {name: value for name, value in case.body.items() if name not in REFUSED_FIELDS}
        case.body = {**kept, "workflowId": random.choice(KNOWN["workflowId"])}
