// `openwop runs link` and `openwop runs revoke-links`: who may see one run's page without the key, and who no longer.
import type { Command } from 'commander';
import { printable } from '../words/printable.js';
import { CALLED, type Cli, type JsonFlag } from './cli.ts';
import { shellWord } from './question-lines.ts';
import { command } from './run-commands.ts';
import { postBelowRun } from './run-reads.ts';

interface LinkView {
  readonly url: string;
  readonly expiresAt: string;
}

interface RevocationView {
  readonly links: number;
  readonly sessions: number;
}

export function addLinkCommands(runs: Command, cli: Cli): void {
  command(runs, 'link <runId>', "A link that opens the run's page once, within 10 minutes.").action(
    async (runId: string, flags: JsonFlag) => {
      const link = await postBelowRun<LinkView>(cli.client, runId, { path: 'page-link' });
      cli.tell(flags, link, () => printable(link.url));
      if (!flags.json)
        cli.note(
          `Whoever opens it may answer this run. To revoke: ${CALLED} runs revoke-links ${shellWord(runId)}`,
        );
    },
  );
  command(
    runs,
    'revoke-links <runId>',
    "Revoke all links to the run's page, and end the sessions that they opened.",
  ).action(async (runId: string, flags: JsonFlag) => {
    const revoked = await postBelowRun<RevocationView>(cli.client, runId, {
      path: 'page-links:revoke',
    });
    const [links, sessions] = [count(revoked.links), count(revoked.sessions)];
    const text = `Run ${printable(runId)}: links revoked: ${links}, sessions ended: ${sessions}.`;
    cli.tell(flags, revoked, () => text);
  });
}

/** Throws TypeError, which says that it was no answer of a host. */
function count(value: number): number {
  if (!Number.isInteger(value)) throw new TypeError('a count is no whole number');
  return value;
}
