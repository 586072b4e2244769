// `openwop runs skip`: moves the clock of a rehearsal.
import type { Command } from 'commander';
import { CALLED, freshKey, type Cli, type JsonFlag } from './cli.ts';
import { usageFault } from './faults.ts';
import { command } from './run-commands.ts';
import { namedRun, OVERVIEW } from './run-reads.ts';

interface SkipFlags extends JsonFlag {
  readonly toDeadline?: true;
}

export function addSkipCommand(runs: Command, cli: Cli): void {
  command(runs, 'skip <runId> [time]', 'Move the clock of a rehearsal: by 90s, 30m, 12h, 3d or 2w.')
    .option('--to-deadline', 'to the end of the first wait, whatever it is')
    .action((runId: string, time: string | undefined, flags: SkipFlags) =>
      skip(cli, { runId, time, flags }),
    );
}

async function skip(
  cli: Cli,
  { runId, time, flags }: { runId: string; time: string | undefined; flags: SkipFlags },
): Promise<void> {
  const body = bodyOf(time, flags);
  const address = `${OVERVIEW}/${encodeURIComponent(runId)}:skip`;
  const answer = await cli.client
    .post<{ status: string }>(address, { body, idempotencyKey: freshKey() })
    .catch(namedRun(runId));
  cli.tell(flags, answer, () => `Run ${runId}: its clock moves. \`${CALLED} runs show ${runId}\``);
}

const UNITS_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Throws a usage fault. How far a skip may go the host says. */
function bodyOf(time: string | undefined, { toDeadline }: SkipFlags): object {
  if ((time === undefined) !== (toDeadline === true))
    throw usageFault('Say how much time is skipped (such as 3d), or --to-deadline.');
  if (toDeadline) return { to: 'next-deadline' };
  const [, amount = '', unit = ''] = /^(\d{1,9})([smhdw])$/.exec(time ?? '') ?? [];
  const forMs = Number(amount) * (UNITS_MS[unit] ?? NaN);
  if (!(forMs > 0)) throw usageFault(`${time} is no time: it is a number and s, m, h, d or w.`);
  return { forMs };
}
