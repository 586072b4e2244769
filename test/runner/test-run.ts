// Tracks at work, each one vitest after the other, under one limit of time, with what they wrote down so far.
import { startLane, type Lane, type RunningLane } from './lane.ts';
import { readLines, type Line } from './lines.ts';
import { failureLines, outcomeOf, type Outcome } from './outcome.ts';
import type { Track } from './plan.ts';

export class TestRun {
  readonly #path: string;
  readonly #limitMs: number;
  readonly #running = new Set<RunningLane>();
  /** Lanes that ended without a word. */
  #lost = 0;
  #why: string | undefined;
  /** What was written before the end: what a lane says while it is being ended is about that. */
  #before: readonly Line[] | undefined;

  constructor(path: string, limitMs: number) {
    this.#path = path;
    this.#limitMs = limitMs;
  }

  get lines(): readonly Line[] {
    return this.#before ?? readLines(this.#path);
  }

  get outcome(): Outcome {
    return outcomeOf(this.lines, this.#lost);
  }

  /** A line for each failure. */
  get failures(): readonly string[] {
    return failureLines(this.lines, this.#lost);
  }

  /** Why the run ended before its time. */
  get why(): string | undefined {
    return this.#why;
  }

  stop(why: string): void {
    this.#why ??= why;
    this.#before ??= readLines(this.#path);
    for (const lane of this.#running) lane.stop();
  }

  /** The tracks beside each other, the lanes of each one after the other. */
  async play(tracks: readonly Track[], args: readonly string[]): Promise<void> {
    const timer = setTimeout(() => {
      this.stop(`The tests took longer than ${Math.round(this.#limitMs / 60_000)} minutes.`);
    }, this.#limitMs);
    await Promise.all(
      tracks.map(async (track) => {
        for (const lane of track) await this.#runLane(lane, args);
      }),
    );
    clearTimeout(timer);
  }

  async #runLane(lane: Lane, args: readonly string[]): Promise<void> {
    if (this.#why !== undefined) return;
    const running = startLane(lane, args);
    this.#running.add(running);
    const code = await running.ended;
    this.#running.delete(running);
    if (this.#why === undefined && code !== 0 && isLost(this.lines, running.id)) this.#lost += 1;
  }
}

/** Whether a lane that failed says nothing of why: it did not come to its end, or no failure is written down. */
export function isLost(lines: readonly Line[], lane: string): boolean {
  const hasEnded = lines.some((line) => line.kind === 'end' && line.lane === lane);
  return !hasEnded || outcomeOf(lines).failed === 0;
}
