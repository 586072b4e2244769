// What is a mention of an agent and what is none (RFC 0077 §D).
import { describe, expect, it } from 'vitest';
import { mentionedAgents } from '../../src/rules/mentions.ts';

const A = 'vendor.acme.desk.clerk';
const B = 'local.acme.desk.Helper'.toLowerCase();

describe('RFC 0077 §D a mention', () => {
  it.each<[string, string, readonly string[]]>([
    ['alone', `@${A}`, [A]],
    ['in a sentence, with what ends it', `Ask @${A}, or (@${B}). Then @${A}!`, [A, B]],
    [
      'behind quotes, brackets and a colon',
      `"@${A}" [@${B}] to:@core.acme.one`,
      [A, B, 'core.acme.one'],
    ],
    ['with capitals behind the first parts', '@local.acme.deskClerk', ['local.acme.deskClerk']],
    ['at the start of a line', `hi\n@${A}\u2028`, [A]],
    ['of an agent that nobody has', '@local.nobody', ['local.nobody']],
    ['none: an e-mail address', `clerk@${A} and é@${A} and a.b+c@${B}`, []],
    ['none: a name of a human', '@alice, @vendor and @Vendor.acme.desk', []],
    ['none: where the name goes on', `@${A}@host @${A}/path @${A}.9 @${A}ü`, []],
    ['none: in a path', `https://example.org/@${A} //@${A}`, []],
    ['none: between backticks', `\`@${A}\` and \`\`\`\n@${A}\n\`\`\``, []],
    ['none: behind three backticks that nobody closes', `\`\`\`\n@${A}\n\`x`, []],
    ['one backtick that nobody closes is a character', `it\`s @${A}`, [A]],
    ['none: nothing', '', []],
  ])('%s', (_name, text, expected) => {
    expect(mentionedAgents(text)).toEqual(expected);
  });

  it('a hostile text takes no longer than it is long', () => {
    const parts = ['@local.a', '@'.repeat(3), '```', '`', '.a', '@local.a.9', `@${A}/`];
    const texts = parts.map((part) => part.repeat(200_000 / part.length));
    const began = performance.now();
    for (const text of texts) mentionedAgents(text);
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});
