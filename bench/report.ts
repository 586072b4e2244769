// The bench's result: as JSON for machines, as one table for people. The machine is named by cores and memory alone.
import type { Line } from './report-lines.ts';
import { SECTION_NAMES, SECTIONS, type Reports, type SectionName } from './sections.ts';

/** Of the sections that were asked for. */
export interface BenchReport extends Partial<Reports> {
  readonly machine: { readonly cores: number; readonly memoryGiB: number };
  readonly size: string;
  readonly seconds: number;
}

function linesOf<Name extends SectionName>(report: BenchReport, name: Name): readonly Line[] {
  const measured = report[name] as Reports[Name] | undefined;
  return measured === undefined ? [] : SECTIONS[name].lines(measured);
}

/** A table in Markdown, in columns of equal width. */
export function tableOf(report: BenchReport): string {
  const { cores, memoryGiB } = report.machine;
  const lines: Line[] = [
    ['Measured', 'Result', 'Aim'],
    ...SECTION_NAMES.flatMap((name) => linesOf(report, name)),
  ];
  const widths = [0, 1, 2].map((column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const rowOf = (line: readonly string[]) =>
    `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [head = ['', '', ''], ...body] = lines;
  const rule = rowOf(widths.map((width) => '-'.repeat(width)));
  const machine = `Medians of one run on ${cores} cores and ${memoryGiB} GiB of memory.`;
  return `${machine}\n\n${[rowOf(head), rule, ...body.map(rowOf)].join('\n')}\n`;
}
