// `openwop runs link` and `openwop runs revoke-links`: who may see one run's page without the key, and who no longer.
import type { Command } from 'commander';
import { printable } from '../words/printable.js';
import { CALLED, type Cli, type JsonFlag } from './cli.ts';
import { command } from './run-commands.ts';
import { namedRun, OVERVIEW } from './run-reads.ts';

interface LinkView {
  readonly url: string;
  readonly expiresAt: string;
}

interface LinksEndView {
  readonly links: number;
  readonly sessions: number;
}

export function addLinkCommands(runs: Command, cli: Cli): void {
  command(runs, 'link <runId>', "A link that opens the run's page once, within 10 minutes.").action(
    async (runId: string, flags: JsonFlag) => {
      const link = await asked<LinkView>(cli, runId, 'page-link');
      cli.tell(flags, link, () => printable(link.url));
      if (!flags.json)
        cli.note(
          `Who opens it may answer this run: ${CALLED} runs revoke-links ${runId} ends that.`,
        );
    },
  );
  command(
    runs,
    'revoke-links <runId>',
    "End all links to the run's page, and who was let in by one.",
  ).action(async (runId: string, flags: JsonFlag) => {
    const ended = await asked<LinksEndView>(cli, runId, 'page-links:revoke');
    const { links, sessions } = ended;
    cli.tell(
      flags,
      ended,
      () => `Run ${runId}: links ended: ${links}, sessions ended: ${sessions}.`,
    );
  });
}

function asked<View>({ client }: Cli, runId: string, address: string): Promise<View> {
  return client
    .post<View>(`${OVERVIEW}/${encodeURIComponent(runId)}/${address}`, {})
    .catch(namedRun(runId));
}
