// The bench: the sections of its table (sections.ts) that are asked for, one after the other. It starts everything that it
// measures and ends it again.
import { availableParallelism, totalmem } from 'node:os';
import { installRuntime } from '../src/adapters/temporal/worker.ts';
import { cacheFolder, openCacheFolder } from '../src/app/cache-folder.js';
import { benchLogger } from './closing.ts';
import { benchParts, type Parts, type PartsOptions } from './parts.ts';
import type { BenchReport } from './report.ts';
import { SECTION_NAMES, SECTIONS, type Reports, type SectionName } from './sections.ts';
import { rounded } from './statistics.ts';

const MS_PER_SECOND = 1_000;
const BYTES_PER_GIB = 1024 ** 3;

export interface BenchOptions extends Omit<PartsOptions, 'cacheDir'> {
  readonly cacheDir?: string;
  /** Absent: all. */
  readonly only?: readonly SectionName[];
}

function defaultCacheDir(): string {
  const folder = cacheFolder((name) => process.env[name]?.trim() || undefined);
  openCacheFolder(folder);
  return folder;
}

/** Ends what it started when `options.closing` is closed. */
export async function runBench(options: BenchOptions): Promise<BenchReport> {
  const startedMs = performance.now();
  installRuntime(benchLogger);
  const { only = SECTION_NAMES, cacheDir = defaultCacheDir() } = options;
  const parts = await benchParts({ ...options, cacheDir });
  const names = SECTION_NAMES.filter((name) => only.includes(name));
  const reports: Partial<Record<SectionName, unknown>> = {};
  for (const [index, name] of names.entries()) {
    reports[name] = await measured(parts, name);
    const needed = new Set(names.slice(index + 1).flatMap((later) => SECTIONS[later].needs));
    for (const part of SECTIONS[name].needs) if (!needed.has(part)) await parts.stop(part);
  }
  return {
    machine: { cores: availableParallelism(), memoryGiB: rounded(totalmem() / BYTES_PER_GIB, 0) },
    size: options.sizes.name,
    ...(reports as Partial<Reports>),
    seconds: rounded((performance.now() - startedMs) / MS_PER_SECOND, 0),
  };
}

async function measured(parts: Parts, name: SectionName): Promise<unknown> {
  const startedMs = performance.now();
  const report = await SECTIONS[name].measure(parts);
  parts.progress(`${name}: ${rounded((performance.now() - startedMs) / MS_PER_SECOND, 0)} s`);
  return report;
}
