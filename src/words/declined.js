// A person's no is no failure: what pages call it. Runs in the browser, too.

/** Codes of nodes that ended because a person said no (interrupt.md; RFC 0002 §F). */
const NO_OF_A_PERSON = new Set(['approval_rejected', 'escalation_rejected']);

/**
 * @param {string | undefined} code of a node's error
 */
export function isDeclined(code) {
  return code !== undefined && NO_OF_A_PERSON.has(code);
}
