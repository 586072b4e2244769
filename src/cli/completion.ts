// `openwop completion bash|zsh|fish`: a script that asks this program, by the hidden command `complete`, what may stand
// at a place. Ids of runs and workflows are asked of the host: @bomb.sh/tab, whose handlers answer at once, could not.
import { Argument, type Command, type Option } from 'commander';
import type { RunOverviewList } from '../../schemas/types.generated.ts';
import { printable } from '../words/printable.js';
import { STATUS_WORDS } from '../words/status.ts';
import type { Cli } from './cli.ts';
import { quoted } from './question-lines.ts';
import { DEFAULT_COMMAND } from './run-commands.ts';
import { OVERVIEW } from './run-reads.ts';
import { statusText } from './run-tables.ts';
import { listWorkflows } from './start-command.ts';

/** Longer than this (ms) nobody waits for a completion: then there is none. */
const HOST_LIMIT_MS = 1_500;
const MAX_RUNS = 100;
/** A shell puts a candidate into the line as it is: one that it would obey there is none. */
const PLAIN_WORD = /^(--)?\w[\w.:-]*$/;

interface Candidate {
  readonly value: string;
  readonly about: string;
}

export function addCompletion(program: Command, cli: Cli): void {
  program
    .command('completion')
    .description('A script for your shell that completes commands, options and ids.')
    .addArgument(new Argument('<shell>', 'your shell').choices(Object.keys(SCRIPTS)))
    .action((shell: keyof typeof SCRIPTS) =>
      cli.out(SCRIPTS[shell](cli.self.map(quoted).join(' '))),
    );
  program.command('complete [words...]', { hidden: true }).action(async (words: string[]) => {
    const current = words.at(-1) ?? '';
    const found = await candidatesAt(placeOf(program, words.slice(0, -1)), current, cli);
    const lines = found
      .filter(({ value }) => value.startsWith(current) && PLAIN_WORD.test(value))
      .map(({ value, about }) => `${value}\t${printable(about)}\n`);
    cli.out(lines.join(''));
  });
}

/** Where the word stands that is completed. */
interface Place {
  readonly command: Command;
  /** Its positional words so far. */
  readonly given: number;
  /** The option whose value the word is. */
  readonly option: Option | undefined;
}

function placeOf(program: Command, words: readonly string[]): Place {
  let command = program;
  let given = 0;
  let option: Option | undefined;
  for (const word of words) {
    if (option !== undefined) option = undefined;
    else if (word.startsWith('-')) option = optionsOf(command).find((each) => takes(each, word));
    else {
      const inner = command.commands.find((each) => each.name() === word);
      if (inner === undefined) given++;
      command = inner ?? command;
    }
  }
  return { command, given, option };
}

function takes(option: Option, word: string): boolean {
  return option.required && (option.long === word || option.short === word);
}

/** With those of the command that is meant where none is named. */
function optionsOf(command: Command): readonly Option[] {
  const implied = command.commands.find((each) => each.name() === DEFAULT_COMMAND);
  return [command, ...(implied ? [implied] : [])].flatMap((each) =>
    each.createHelp().visibleOptions(each),
  );
}

async function candidatesAt(
  { command, given, option }: Place,
  current: string,
  cli: Cli,
): Promise<readonly Candidate[]> {
  if (option !== undefined) return valuesOf(option.long ?? '', command, cli);
  if (current.startsWith('-'))
    return optionsOf(command).map(({ long, description }) => ({
      ...{ value: long ?? '', about: description },
    }));
  const argument = command.registeredArguments[given];
  const inner = given === 0 ? command.createHelp().visibleCommands(command) : [];
  const commands = inner.map((each) => ({ value: each.name(), about: each.description() }));
  const choices = (argument?.argChoices ?? []).map((value) => ({ value, about: '' }));
  const ids = argument ? await valuesOf(argument.name(), command, cli) : [];
  return [...commands, ...choices, ...ids];
}

/** What stands at an argument or behind an option, by its name. A host that does not answer knows nothing. */
async function valuesOf(name: string, command: Command, cli: Cli): Promise<readonly Candidate[]> {
  try {
    switch (name) {
      case '--status':
        return Object.entries(STATUS_WORDS).map(([value, { text }]) => ({ value, about: text }));
      case '--workflow':
      case 'workflowId':
        return await workflowIds(cli);
      case 'runId':
        return await runIds(cli, command.name() === 'answer');
      default:
        return [];
    }
  } catch {
    // Nobody looks for an error where a word is completed.
    return [];
  }
}

async function workflowIds({ client }: Cli): Promise<readonly Candidate[]> {
  const { workflows } = await listWorkflows(client, HOST_LIMIT_MS);
  return workflows.map(({ workflowId, name }) => ({ value: workflowId, about: name }));
}

async function runIds({ client }: Cli, onlyWaiting: boolean): Promise<readonly Candidate[]> {
  const query = `limit=${MAX_RUNS}${onlyWaiting ? '&waiting=true' : ''}`;
  const { runs } = await client.get<RunOverviewList>(`${OVERVIEW}?${query}`, HOST_LIMIT_MS);
  return runs.map(({ runId, status, workflowId }) => ({
    ...{ value: runId, about: `${statusText(status)}, ${workflowId}` },
  }));
}

/** Each takes the words that call this program; `openwop` calls it, too, where nothing has that name yet. */
const SCRIPTS = {
  bash: (self: string) => `# bash: source <(npm run -s openwop -- completion bash)
type openwop >/dev/null 2>&1 || openwop() { ${self} "$@"; }
_openwop() {
  local value
  COMPREPLY=()
  while IFS=$'\\t' read -r value _; do
    COMPREPLY+=("$value")
  done < <(${self} complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _openwop openwop
`,
  zsh: (self: string) => `# zsh: source <(npm run -s openwop -- completion zsh), behind compinit
whence openwop >/dev/null || openwop() { ${self} "$@" }
_openwop() {
  local line
  local -a found
  for line in "\${(@f)$(${self} complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  (( $#found )) && _describe openwop found
}
compdef _openwop openwop
`,
  fish: (self: string) => `# fish: npm run -s openwop -- completion fish | source
type -q openwop; or function openwop; ${self} $argv; end
function __openwop_complete
  set -l words (commandline -opc) (commandline -ct)
  ${self} complete -- $words[2..-1] 2>/dev/null
end
complete -c openwop -f -a '(__openwop_complete)'
`,
} as const;
