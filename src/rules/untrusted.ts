// Marks on text that the host did not write (RFC 0143 `prompt-injection-*`): a task, a tool's output, a
// human's answers. The text cannot close its own mark: markers inside it are neutralised with JSON escapes, so that
// JSON inside keeps its meaning.

const CLOSING_INSIDE = /<(\s*)\/(\s*UNTRUSTED)/gi;
const OPENING_INSIDE = /<(\s*)U(?=NTRUSTED)/gi;
const SEGMENT = /<UNTRUSTED(?: tool="[^"]*")?>\n([\s\S]*?)\n<\/UNTRUSTED>/;

/** Wraps untrusted text. `tool` names the tool whose output it is. */
export function wrapUntrusted(text: string, tool?: string): string {
  const inner = text.replace(CLOSING_INSIDE, '<$1\\/$2').replace(OPENING_INSIDE, '<$1\\u0055');
  const mark = tool === undefined ? '' : ` tool="${tool.replace(/[^A-Za-z0-9:._/-]/g, '_')}"`;
  return `<UNTRUSTED${mark}>\n${inner}\n</UNTRUSTED>`;
}

/** The inside of the first marked segment, or undefined. */
export function untrustedSegment(text: string): string | undefined {
  return SEGMENT.exec(text)?.[1];
}
