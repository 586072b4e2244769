// The command line `openwop`: arguments in, text out, an exit code. Knows only the host's HTTP API.
import { Command, CommanderError } from 'commander';
import { printableJson, printableLines } from '../words/printable.js';
import { addBundleCommands } from './bundle-commands.ts';
import { addAgentCommands } from './agent-commands.ts';
import { cliOf, type CliParts } from './cli.ts';
import { addCompletion } from './completion.ts';
import { addDeploymentCommands } from './deployment-commands.ts';
import { addDiffCommand } from './diff-command.ts';
import { addForkCommand } from './fork-command.ts';
import { addLinkCommands } from './link-commands.ts';
import { CliFault, EXIT, usageFault, type ExitCode } from './faults.ts';
import { addReplayCommands } from './replay-command.ts';
import { addRetentionCommands } from './retention-commands.ts';
import { addRunCommands } from './run-commands.ts';
import { addSessionCommands } from './session-commands.ts';
import { addSkipCommand } from './skip-command.ts';
import { addStartCommands } from './start-command.ts';
import { addSubjectCommands } from './subject-commands.ts';

const ENVIRONMENT = `
Environment:
  OPENWOP_URL       where the host is; when absent OPENWOP_PORT of this machine, else where the host of the
                    data folder listened last, else http://127.0.0.1:8787
  OPENWOP_API_KEY   its key; when absent the one kept in the data folder of \`npm start\`
  OPENWOP_DATA_DIR  that folder; .data when absent
  NO_COLOR          set to anything: no colours
  COLUMNS           width of what is printed; when absent that of the terminal

Exit codes:
  ${EXIT.done}    done; of a run that was followed: completed
  ${EXIT.refused}    the host or the network said no; of a run that was followed: failed;
       of one run and its replay (import): they differ;
       of two runs (diff): they differ, or were not compared to their ends;
       of a cohort (replay) with --fail-on or --wrong: a run came to what --fail-on names, one of --wrong was not
       righted or is not there, or a result is not known (see --permit);
       of open runs (upgrade-check): this build would break some
  ${EXIT.usage}    the command was not understood, or wants more said
  ${EXIT.waits}    a human is asked (runs follow --until-question)
  ${EXIT.cancelled}    the run, or the cohort, that was followed was cancelled
  ${EXIT.interrupted}  Ctrl-C: what was followed goes on (replay: see --cancel-on-interrupt)

With --json the result is JSON and alone on the standard output (runs follow: one document per line); errors are
{"error": {"code", "message", …}} on the standard error.`;

/** Resolves to the exit code; everything that a person can act upon was printed. */
export async function runCli(args: readonly string[], parts: CliParts): Promise<number> {
  const asJson = isJson(args);
  let code: ExitCode = EXIT.done;
  const cli = cliOf(parts, (ended) => void (code = ended));
  const program = new Command('openwop')
    .description('Looks at an OpenWOP host: its runs, what they ask, its agents.')
    .exitOverride()
    .configureOutput({
      writeOut: parts.out,
      writeErr: (text) => asJson || parts.err(printableLines(text)),
      getOutHelpWidth: () => parts.screen?.columns ?? 100,
      getErrHelpWidth: () => parts.screen?.columns ?? 100,
    })
    .showHelpAfterError('(add --help for what can be said)')
    .addHelpText('after', ENVIRONMENT);
  addStartCommands(program, cli);
  const runs = addRunCommands(program, cli);
  addLinkCommands(runs, cli);
  addSkipCommand(runs, cli);
  addForkCommand(program, cli);
  addDiffCommand(program, cli);
  addReplayCommands(program, cli);
  addSessionCommands(program, cli);
  addAgentCommands(program, cli);
  addBundleCommands(program, cli);
  addRetentionCommands(program, cli);
  addDeploymentCommands(program, cli);
  addSubjectCommands(program, cli);
  addCompletion(program, cli);
  try {
    checkAddress(parts);
    await program.parseAsync([...args], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return EXIT.done;
      if (asJson) tellFault(parts, usageFault(error.message.replace(/^error: /, '')), asJson);
      return EXIT.usage;
    }
    const fault = error instanceof CliFault ? error : unreadable(parts, error);
    tellFault(parts, fault, asJson);
    return fault.exitCode;
  }
}

/** Said before anything is asked: no request could be made, and its error would not say why. */
function checkAddress({ url, apiKey }: CliParts): void {
  const address = URL.canParse(url) ? new URL(url) : undefined;
  if (!address || !/^https?:$/.test(address.protocol))
    throw new CliFault('OPENWOP_URL must be a URL that begins with http:// or https://.', {
      code: 'bad_url',
    });
  if (address.username !== '' || address.password !== '')
    throw new CliFault(
      'OPENWOP_URL must hold no user and no password: OPENWOP_API_KEY is the key.',
      {
        code: 'bad_url',
      },
    );
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey))
    throw new CliFault('OPENWOP_API_KEY must have visible ASCII characters alone.', {
      code: 'bad_key',
    });
}

/** JSON that is no answer of a host is seen where a part of it is missing or of another kind. */
function unreadable({ url }: CliParts, error: unknown): CliFault {
  if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
  return new CliFault(
    `What answers at ${url} gave what no OpenWOP host of this version gives (${error.message}).`,
    { code: 'not_a_host', cause: error },
  );
}

function isJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).includes('--json');
}

function tellFault({ err }: CliParts, fault: CliFault, asJson: boolean): void {
  const { status, details, more } = fault.facts;
  const error = { code: fault.code, message: fault.message, status, details, ...more };
  err(asJson ? `${printableJson({ error })}\n` : `openwop: ${printableLines(fault.message)}\n`);
}
