// The activities of a worker (architecture §1): everything that touches the world, over the ports that the worker
// composes.
import { callTool, knownCall } from './call-tool.ts';
import { checkValue } from './check-value.ts';
import { cancelChild, endChild, keepTime, startChildren } from './child-runs.ts';
import type { Activities } from './contract.ts';
import { guarded } from './failures.ts';
import { beating } from './heartbeat.ts';
import { inferTurn } from './infer-turn.ts';
import type { ActivityPorts } from './ports.ts';
import { prepareInvocation } from './prepare-invocation.ts';
import { recordedAnswers } from './recorded-answers.ts';
import { forkChildren, readRecording } from './recording.ts';
import { sealBlock } from './seal-block.ts';
import { tellReasoning } from './tell-reasoning.ts';

export type { ActivityPorts } from './ports.ts';

export function createActivities(ports: ActivityPorts): Activities {
  return {
    checkValue: (input) => guarded(ports, () => checkValue(input)),
    prepareInvocation: (input) => guarded(ports, () => prepareInvocation(ports, input)),
    inferTurn: (input) => guarded(ports, () => inferTurn(ports, input)),
    callTool: (input) =>
      guarded(ports, () => callTool(ports, input), {
        instead: () => knownCall(ports, input),
      }),
    tellReasoning: (input) => guarded(ports, () => tellReasoning(ports, input)),
    recordedAnswers: (input) => guarded(ports, () => beating(() => recordedAnswers(ports, input))),
    sealBlock: (input) => guarded(ports, () => sealBlock(ports, input)),
    startChildren: (input) => guarded(ports, () => startChildren(ports, input)),
    endChild: (input) => guarded(ports, () => endChild(ports, input)),
    cancelChild: (input) => guarded(ports, () => cancelChild(ports, input)),
    keepTime: (input) => guarded(ports, () => keepTime(ports, input), { tries: Infinity }),
    readRecording: (input) => guarded(ports, () => beating(() => readRecording(ports, input))),
    forkChildren: (input) => guarded(ports, () => forkChildren(ports, input)),
  };
}
