// A run's question as the terminal shows it: the same words as on the page, and for each answer the request that gives
// it, in the form that this kind of question takes (interrupt.md).
import { commandLines, questionHead, quoted, subjectLines } from '../cli/question-lines.ts';
import { printable, printableJson } from '../words/printable.js';
import type { JsonValue } from '../rules/json.ts';
import { choicesOf, type Choice } from '../words/choices.ts';
import type { OpenQuestion } from '../words/question.ts';

export interface AnswerAddress {
  readonly url: string;
  /** Absent: the shell's OPENWOP_API_KEY. */
  readonly apiKey?: string;
  readonly runId: string;
}

/** Lines to print; the commands can be pasted into a POSIX shell. */
export function questionLines(open: OpenQuestion, address: AnswerAddress): readonly string[] {
  const lines = ['', ...questionHead(open), ...subjectLines(open)];
  const choices = choicesOf(open);
  if (choices.length === 0) return [...lines, '  Another system answers this.', ''];
  return [
    ...lines,
    'Answer on the page, or:',
    ...commandLines(open, address.runId),
    ...requestLines(open, address, choices),
    '',
  ];
}

/** A request for each answer but one whose content is too large to be sent back. */
function requestLines(
  { nodeId, interruptId }: OpenQuestion,
  address: AnswerAddress,
  choices: readonly Choice[],
): readonly string[] {
  const [first, ...others] = choices.flatMap(({ action, value }) =>
    value === undefined ? [] : [{ action, value }],
  );
  if (!first) return [];
  const path = `/v1/runs/${address.runId}/interrupts/${encodeURIComponent(nodeId)}`;
  return [
    `or by HTTP: (${printable(first.action)})`,
    `  curl -X POST ${quoted(`${address.url}${path}`)} \\`,
    `    -H ${bearer(address.apiKey)} -H 'Content-Type: application/json' \\`,
    `    ${body(interruptId, first.value)}`,
    ...others.flatMap(({ action, value }) => [
      `  or, in place of the last line: (${printable(action)})`,
      `    ${body(interruptId, value)}`,
    ]),
  ];
}

function body(interruptId: string, resumeValue: JsonValue): string {
  return `-d ${quoted(printableJson({ resumeValue, interruptId }))}`;
}

/** The header with the key, as one word of a shell. */
export function bearer(apiKey: string | undefined): string {
  return apiKey === undefined
    ? '"Authorization: Bearer $OPENWOP_API_KEY"'
    : quoted(`Authorization: Bearer ${apiKey}`);
}
