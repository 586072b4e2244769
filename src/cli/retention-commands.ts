// `openwop retention`, `openwop hold` and `openwop release`: how long runs are kept, and which are kept for longer.
import type { Command } from 'commander';
import { printable } from '../words/printable.js';
import { unreadableText } from '../words/unreadable.ts';
import type { Cli, JsonFlag } from './cli.ts';
import { command } from './run-commands.ts';
import { postBelowRun } from './run-reads.ts';
import { table } from './terminal.ts';

const RETENTION = '/v1/host/openwop-temporal/retention';

interface RetentionView {
  /** Absent: runs are kept for ever. */
  readonly days?: number;
  readonly held: number;
  readonly expiredRuns: number;
  readonly next: readonly {
    readonly runId: string;
    readonly workflowId: string;
    readonly endedAt: string;
    readonly expiresAt?: string;
    readonly held: boolean;
    readonly unreadable?: { readonly message: string };
  }[];
  readonly expired: readonly {
    readonly runId: string;
    readonly workflowId: string;
    readonly expiredAt: string;
    readonly deleted: boolean;
    readonly unreadable?: { readonly message: string };
  }[];
}

interface HoldView {
  readonly runId: string;
  readonly held: boolean;
  readonly reason?: string;
}

export function addRetentionCommands(program: Command, cli: Cli): void {
  command(
    program,
    'retention',
    'How long runs are kept, which expire next, and which have.',
  ).action(async (flags: JsonFlag) => {
    const view = await cli.client.get<RetentionView>(RETENTION);
    cli.tell(flags, view, () => retentionText(cli, view));
  });
  command(program, 'hold <runId>', 'Keep a run, and its family, until it is released.')
    .requiredOption('--reason <text>', 'why; it is shown with the run')
    .action(async (runId: string, flags: JsonFlag & { readonly reason: string }) => {
      const asked = { path: 'hold', body: { reason: flags.reason } };
      const view = await postBelowRun<HoldView>(cli.client, runId, asked);
      cli.tell(flags, view, () => `Run ${runId} is held: ${printable(view.reason ?? '')}`);
    });
  command(program, 'release <runId>', 'End the hold of a run.').action(
    async (runId: string, flags: JsonFlag) => {
      const view = await postBelowRun<HoldView>(cli.client, runId, { path: 'release' });
      cli.tell(flags, view, () => `Run ${runId} is not held.`);
    },
  );
}

function retentionText({ screen }: Cli, view: RetentionView): string {
  const { days, held, expiredRuns, next, expired } = view;
  const policy =
    days === undefined
      ? 'Runs are kept for ever (OPENWOP_RETENTION_DAYS is not set).'
      : `Runs expire ${days} days after the last of their family has ended.`;
  const parts = [
    `${policy} Held: ${held}. Expired: ${expiredRuns}.`,
    ...(next.length === 0 ? [] : [`Ended first:\n${nextTable(next, screen)}`]),
    ...(expired.length === 0 ? [] : [`Expired last:\n${expiredTable(expired, screen)}`]),
  ];
  return parts.join('\n\n');
}

function nextTable(next: RetentionView['next'], screen: Cli['screen']): string {
  const rows = next.map(({ runId, workflowId, endedAt, expiresAt, held, unreadable }) => [
    ...[runId, workflowId, unreadable ? unreadableText(unreadable) : endedAt],
    held ? 'held' : (expiresAt ?? 'never'),
  ]);
  return table(['RUN', 'WORKFLOW', 'ENDED', 'EXPIRES'], rows, { screen });
}

function expiredTable(expired: RetentionView['expired'], screen: Cli['screen']): string {
  const rows = expired.map(({ runId, workflowId, expiredAt, deleted, unreadable }) => [
    ...[runId, workflowId, unreadable ? unreadableText(unreadable) : expiredAt],
    deleted ? 'all' : 'not yet',
  ]);
  return table(['RUN', 'WORKFLOW', 'EXPIRED', 'DELETED'], rows, { screen });
}
