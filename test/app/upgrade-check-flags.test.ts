// docs/upgrades.md: what `upgrade-check` looks at, and what it refuses.
import { describe, expect, it } from 'vitest';
import { askedOf } from '../../src/app/upgrade-check-flags.ts';

describe('docs/upgrades.md upgrade-check', () => {
  it.each([
    [[], { ended: 50 }],
    [['--ended', '0'], { ended: 0 }],
    [['--build', '2026-05'], { ended: 0, build: '2026-05' }],
    [['--build', '2026-05', '--ended', '3'], { ended: 3, build: '2026-05' }],
  ])('%j', (flags, asked) => {
    expect(askedOf(flags)).toEqual(asked);
  });

  it.each([[['--build', 'a b']], [['--build']], [['--ended', 'many']], [['--closed', '1']]])(
    'refuses %j',
    (flags) => {
      expect(() => askedOf(flags)).toThrow('--build ID');
    },
  );
});
