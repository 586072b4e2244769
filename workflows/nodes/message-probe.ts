// Test mode only (conformance/fixtures.md): `emitDuplicateMessageId` has a core.identity write three messages to the
// definition's message channel, the last under the id of the one before, as a repeated emission would be. The real
// reducer folds them (RFC 0002 §G).
import { isoTime } from '../../src/rules/channels.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { checkWrite, writeChannel } from '../channels.ts';
import type { Visit } from '../context.ts';
import { stepKey } from '../steps.ts';

/** Channel of a definition that declares none. */
const MESSAGES = 'messages';

export async function probeMessages(visit: Visit): Promise<void> {
  const { run, node } = visit;
  if (node.config.emitDuplicateMessageId !== true) return;
  const declared = Object.entries(run.input.definition.channels ?? {});
  const channel = declared.find(([, { reducer }]) => reducer === 'message')?.[0] ?? MESSAGES;
  const timestamp = isoTime(run.steps.now(stepKey(visit, 'probe')));
  const messages = [1, 2, 2].map((number, index): JsonObject => ({
    messageId: `${run.input.idSeed}-message-${number}`,
    role: 'assistant',
    content: `emission ${index + 1}`,
    timestamp,
    ...(node.agent ? { agentId: node.agent.agentId } : {}),
  }));
  for (const [index, value] of messages.entries()) {
    await checkWrite(visit, { channel, value, index });
    writeChannel(visit, { channel, value, undeclared: { reducer: 'message' }, index });
  }
}
