// A run's question as the terminal shows it: the same words as on the page, and for each answer the request that gives
// it, in the form that this kind of question takes (interrupt.md).
import { printable, printableJson } from '../words/printable.ts';
import type { JsonValue } from '../rules/json.ts';
import { choicesOf } from '../words/choices.ts';
import type { OpenQuestion } from '../words/question.ts';

export interface AnswerAddress {
  readonly url: string;
  /** Absent: the shell's OPENWOP_API_KEY. */
  readonly apiKey?: string;
  readonly runId: string;
}

/** Lines to print; the requests can be pasted into a POSIX shell. */
export function questionLines(open: OpenQuestion, address: AnswerAddress): readonly string[] {
  const { nodeId, interruptId, data, deadlineMs } = open;
  const [first, ...others] = choicesOf(open);
  const text = (name: string): string[] =>
    typeof data[name] === 'string' && data[name] !== '' ? [printable(data[name])] : [];
  const lines = [
    '',
    `A human is asked (${printable(nodeId)}): ${text('title')[0] ?? open.kind}`,
    ...text('description').map((description) => `  ${description}`),
    ...(deadlineMs === undefined ? [] : [`  Answer until ${new Date(deadlineMs).toISOString()}.`]),
  ];
  if (!first) return [...lines, '  Another system answers this.', ''];
  const path = `/v1/runs/${address.runId}/interrupts/${encodeURIComponent(nodeId)}`;
  return [
    ...lines,
    `Answer on the page, or: (${first.action}) ${printable(first.words)}`,
    `  curl -X POST ${quoted(`${address.url}${path}`)} \\`,
    `    -H ${bearer(address.apiKey)} -H 'Content-Type: application/json' \\`,
    `    ${body(interruptId, first.value)}`,
    ...others.flatMap(({ action, words, value }) => [
      `  or, in place of the last line: (${action}) ${printable(words)}`,
      `    ${body(interruptId, value)}`,
    ]),
    '',
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

/** One word of a shell, whatever it holds. */
function quoted(text: string): string {
  return `'${printable(text).replaceAll("'", String.raw`'\''`)}'`;
}
