// A run's question in a terminal: the same words as on the page, and for each answer the command that gives it.
import type { JsonValue } from '../rules/json.ts';
import { choicesOf, fillInOf, type Choice } from '../words/choices.ts';
import { printable, printableJson, printableLines } from '../words/printable.js';
import {
  askedBackOf,
  formShapeOf,
  headOf,
  questionsOf,
  silenceWords,
  tooLargeWords,
  turnsOf,
  type OpenQuestion,
  type Question,
} from '../words/question.ts';
import { tallyWords, votedAnswers, voteLines, votesOf, type VotedAnswer } from '../words/votes.ts';
import { CALLED } from './cli.ts';
import { wrapped, type Screen } from './terminal.ts';

const WIDE: Screen = { colour: false };

/** What is asked, what it is about, until when, and what was voted and asked back until now. */
export function questionHead(open: OpenQuestion, screen: Screen = WIDE): readonly string[] {
  const { nodeId, deadlineMs } = open;
  const { title, lead } = headOf(open, nodeId);
  const who = formShapeOf(open) === 'none' ? 'Another system is awaited' : 'A human is asked';
  return [
    ...wrapped(`${who} (${printable(nodeId)}): ${printable(title)}`, '', screen),
    ...wrapped(printable(lead), '  ', screen),
    ...(deadlineMs === undefined
      ? []
      : wrapped(
          `Answer until ${new Date(deadlineMs).toISOString()}. ${silenceWords(open)}`,
          '  ',
          screen,
        )),
    ...soFarLines(open, screen),
  ];
}

function soFarLines({ data }: OpenQuestion, screen: Screen): readonly string[] {
  const votes = votesOf(data);
  const asked = askedBackOf(data).map(({ by, text }) => `${by} asks about it: ${text}`);
  const voted = votes === undefined ? [] : votedAnswers(data).flatMap(votedLines);
  return [...(votes === undefined ? [] : [votes]), ...voted, ...asked].flatMap((line) =>
    wrapped(printable(line), '  ', screen),
  );
}

function votedLines(answer: VotedAnswer): readonly string[] {
  const { content, by } = answer;
  return [
    tallyWords(answer),
    ...(content === undefined ? [] : [printableJson(content)]),
    ...by.map((vote) => [vote.voter, ...voteLines(vote)].join(': ')),
  ];
}

/** What is to be judged, as JSON, what is asked, or what was said; nothing where the question has none. */
export function subjectLines({ kind, data }: OpenQuestion): readonly string[] {
  const shape = formShapeOf({ kind, data });
  if (shape === 'clarification') return questionsOf(data).flatMap(askedLines);
  if (shape === 'talk')
    return turnsOf(data).map(({ who, content }) => `  ${printable(who)}: ${saidText(content)}`);
  const subject = shape === 'low-confidence' ? data.decision : data.artifactData;
  const about = subject ?? data.correlation ?? data.payload;
  return about === undefined
    ? []
    : printableJson(about, 2)
        .split('\n')
        .map((line) => `  ${line}`);
}

function askedLines({ id, question, schema }: Question): readonly string[] {
  const options = Array.isArray(schema?.enum) ? ` (${schema.enum.map(saidText).join(', ')})` : '';
  return [`  ${printable(id)}: ${printable(question)}${options}`];
}

function saidText(said: JsonValue): string {
  return typeof said === 'string' ? printable(said) : printableJson(said);
}

/** One answer per pair of lines: what it does, and the command, which is never broken. */
export function commandLines(
  open: OpenQuestion,
  runId: string,
  screen: Screen = WIDE,
): readonly string[] {
  return choicesOf(open).flatMap((choice) => [
    ...wrapped(`${printable(choice.action)}: ${printable(choice.label)}`, '  ', screen),
    ...(choice.value === undefined ? wrapped(tooLargeWords(open), '    ', screen) : []),
    `    ${answerCommand(open, runId, choice)}`,
  ]);
}

/** A word of a shell for each part, whatever the question holds. */
function answerCommand(open: OpenQuestion, runId: string, choice: Choice): string {
  const run = [CALLED, 'runs answer', shellWord(runId)];
  const interrupt = ['--interrupt', shellWord(open.interruptId)];
  if (fillInOf(open, choice) === 'answers' && !arePlain(open, choice))
    return [...run, ...interrupt, `--value ${quoted(printableJson(choice.value))}`].join(' ');
  return [...run, shellWord(choice.action), ...interrupt, ...givenWith(open, choice)].join(' ');
}

/** Whether each `--answer id=text` says the id and the text as they are. */
function arePlain({ data }: OpenQuestion, { value }: Choice): boolean {
  const { answers } = value as { readonly answers: Readonly<Record<string, JsonValue>> };
  return questionsOf(data).every(({ id }) => {
    const answer = answers[id] ?? null;
    if (typeof answer === 'object' || id.includes('=')) return false;
    const said = `${id}${answer}`;
    return printable(said) === said;
  });
}

function givenWith(open: OpenQuestion, choice: Choice): readonly string[] {
  if (choice.value === undefined) return ["--value '…'"];
  const parts = choice.value as Readonly<Record<string, JsonValue>>;
  switch (fillInOf(open, choice)) {
    case 'answers': {
      const answers = parts.answers as Readonly<Record<string, JsonValue>>;
      return questionsOf(open.data).map(({ id }) => {
        const answer = answers[id] ?? '…';
        const text = typeof answer === 'string' ? answer : printableJson(answer);
        return `--answer ${quoted(`${id}=${text}`)}`;
      });
    }
    case 'change':
      return [
        `--value ${quoted(printableJson(parts.decision ?? parts.editedArtifactData ?? null))}`,
      ];
    case 'outcome':
      return parts.outcome === undefined ? [] : [`--value ${quoted(printableJson(parts.outcome))}`];
    case 'refinement':
    case 'question':
    case 'turn':
      return ["--reason '…'"];
    case 'reason':
    case 'nothing':
      return [];
  }
}

/** One word of a shell on one line, whatever it holds; JSON that is printable stays as it is. */
export function quoted(text: string): string {
  const line = printableLines(text).replaceAll(/\s*\n\s*/g, ' ');
  return `'${line.replaceAll("'", String.raw`'\''`)}'`;
}

export function shellWord(text: string): string {
  return /^[\w.:-]+$/.test(text) ? text : quoted(text);
}
