// Mentions of agents in what people write (RFC 0077 §D). A mention is `@` and a name of the form of an agent's id, where
// no word, address or path goes on before it or behind it: an e-mail address is none. Between backticks, one or three,
// nothing is mentioned, as people write code; three that nobody closes reach to the end.

const CODE = /```[\s\S]*?(?:```|$)|`[^`\n]*`/g;
const MENTION =
  /(?<![\p{L}\p{N}_.+%/@-])@((?:core|vendor|community|private|local)(?:\.[A-Za-z][\w-]*)+)(?![\p{L}\p{N}_@/-]|\.[\p{L}\p{N}_])/gu;

/** Each agent once, in the order of their first mentions. Whether there is such an agent is not asked. */
export function mentionedAgents(text: string): readonly string[] {
  const found = text.replace(CODE, ' ').matchAll(MENTION);
  return [...new Set(Array.from(found, ([, agentId = '']) => agentId))];
}
