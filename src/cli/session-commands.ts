// `openwop sessions …` (seed 003, seed 000 §G): what groups runs, what was said there, and saying something to an agent.
import type { Command } from 'commander';
import type { JsonValue } from '../rules/json.ts';
import { printable, printableJson } from '../words/printable.js';
import { unreadableText } from '../words/unreadable.ts';
import { CALLED, freshKey, type Cli, type JsonFlag } from './cli.ts';
import { CliFault, codeOf } from './faults.ts';
import { followRun } from './follow.ts';
import { command, DEFAULT_COMMAND, numberTo } from './run-commands.ts';
import { statusText } from './run-tables.ts';
import { table, wrapped } from './terminal.ts';

const SESSIONS = '/v1/host/openwop-temporal/sessions';
const SHOWN_SESSIONS = 50;
/** Most that one command lists; more are read by the API, page by page. */
const MAX_SESSIONS = 200;
const SHOWN_MESSAGES = 1_000;
const MAX_MESSAGES = 10_000;
/** Messages that the host gives at once. */
const PAGE_MESSAGES = 100;

interface SessionView {
  readonly sessionId: string;
  readonly title?: string;
  readonly tags: readonly string[];
  readonly unreadable?: { readonly message: string };
  readonly lastActivityAt: string;
}

interface MessageView {
  readonly from: string;
  readonly content: JsonValue;
  readonly ts: number;
}

interface Accepted {
  readonly runId: string;
  readonly status: string;
}

interface LimitFlag extends JsonFlag {
  readonly limit: number;
}

interface SayFlags extends JsonFlag {
  readonly follow?: true;
  readonly idempotencyKey?: string;
}

export function addSessionCommands(program: Command, cli: Cli): void {
  const sessions = program.command('sessions').description('What groups runs, and what was said.');
  command(sessions, DEFAULT_COMMAND, 'Sessions, the last active first (the default).')
    .option(
      '--limit <n>',
      `sessions, up to ${MAX_SESSIONS}`,
      numberTo(1, MAX_SESSIONS),
      SHOWN_SESSIONS,
    )
    .allowExcessArguments()
    .action(async (flags: LimitFlag, list: Command) => {
      const [unknown] = list.args;
      if (unknown !== undefined) list.error(`error: unknown command '${printable(unknown)}'`);
      await listSessions(cli, flags);
    });
  command(sessions, 'read <sessionId>', 'What was said there, the first said first.')
    .option(
      '--limit <n>',
      `messages, up to ${MAX_MESSAGES}`,
      numberTo(1, MAX_MESSAGES),
      SHOWN_MESSAGES,
    )
    .action((sessionId: string, flags: LimitFlag) => readSession(cli, sessionId, flags));
  command(sessions, 'say <sessionId> <text>', 'Say something to the agent that it mentions (@ID).')
    .option('--follow', 'follow the run that it starts until it ends')
    .option('--idempotency-key <key>', 'the same key starts one run, for 24 hours')
    .action((sessionId: string, text: string, flags: SayFlags) =>
      say(cli, { sessionId, text, flags }),
    );
}

async function listSessions(cli: Cli, flags: LimitFlag): Promise<void> {
  const answer = await cli.client.get<{
    readonly sessions: readonly SessionView[];
    readonly nextCursor?: string;
  }>(`${SESSIONS}?limit=${flags.limit}`);
  cli.tell(flags, answer, () =>
    answer.sessions.length === 0
      ? 'No sessions yet.'
      : table(
          ['SESSION', 'TITLE', 'TAGS', 'LAST ACTIVE'],
          answer.sessions.map(({ sessionId, title, tags, unreadable, lastActivityAt }) => [
            ...[sessionId, unreadable ? unreadableText(unreadable) : title],
            ...[tags.join(' '), lastActivityAt],
          ]),
          { screen: cli.screen },
        ),
  );
  if (answer.nextCursor !== undefined && !flags.json)
    cli.note('There are more: --limit shows them.');
}

async function readSession(cli: Cli, sessionId: string, flags: LimitFlag): Promise<void> {
  const messages: MessageView[] = [];
  let nextCursor: string | undefined;
  let unreadable: SessionView['unreadable'];
  do {
    const query = new URLSearchParams({
      limit: String(Math.min(PAGE_MESSAGES, flags.limit - messages.length)),
      ...(nextCursor === undefined ? {} : { cursor: nextCursor }),
    });
    const page = await cli.client
      .get<{
        readonly messages: readonly MessageView[];
        readonly unreadable?: SessionView['unreadable'];
        readonly nextCursor?: string;
      }>(`${pathOf(sessionId)}/conversation?${query.toString()}`)
      .catch(namedSession(sessionId));
    messages.push(...page.messages);
    ({ nextCursor } = page);
    unreadable ??= page.unreadable;
  } while (nextCursor !== undefined && messages.length < flags.limit);
  const document = {
    messages,
    ...(unreadable ? { unreadable } : {}),
    ...(nextCursor === undefined ? {} : { nextCursor }),
  };
  cli.tell(flags, document, () =>
    messages.length === 0 && !unreadable
      ? 'Nothing was said there yet.'
      : messages.map((message) => messageText(message, cli)).join('\n'),
  );
  if (unreadable && !flags.json) cli.note(unreadableText(unreadable));
  if (nextCursor !== undefined && !flags.json) cli.note('There is more: --limit shows it.');
}

/** Who, and below it what. */
function messageText({ from, content, ts }: MessageView, { screen }: Cli): string {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  const lines = text.split(/\r?\n/).flatMap((line) => wrapped(printable(line), '  ', screen));
  return [`${printable(from)}  ${new Date(ts).toISOString()}`, ...lines].join('\n');
}

interface Saying {
  readonly sessionId: string;
  readonly text: string;
  readonly flags: SayFlags;
}

async function say(cli: Cli, { sessionId, text, flags }: Saying): Promise<void> {
  const idempotencyKey = flags.idempotencyKey ?? freshKey();
  const accepted = await cli.client
    .post<Accepted>(`${pathOf(sessionId)}/messages`, { body: { content: text }, idempotencyKey })
    .catch(namedSession(sessionId));
  const { runId, status } = accepted;
  if (flags.json) cli.out(`${printableJson(accepted, flags.follow ? undefined : 2)}\n`);
  else cli.out(`Run ${printable(runId)}: ${statusText(status)}.\n`);
  if (flags.follow) cli.ends(await followRun(cli, runId, { json: flags.json }));
  else if (!flags.json) cli.note(`What comes of it: ${CALLED} sessions read ${sessionId}`);
}

function pathOf(sessionId: string): string {
  return `${SESSIONS}/${encodeURIComponent(sessionId)}`;
}

/** The host does not repeat which session it lacks. */
function namedSession(sessionId: string): (error: unknown) => never {
  return (error) => {
    if (codeOf(error) !== 'not_found') throw error;
    throw new CliFault(
      `The host knows no session ${sessionId}. \`${CALLED} sessions\` lists them.`,
      { ...(error as CliFault).facts, cause: error },
    );
  };
}
