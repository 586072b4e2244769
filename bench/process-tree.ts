// Resident memory of a process and all its descendants, from /proc (Linux).
import { readdirSync, readFileSync } from 'node:fs';
import { rounded } from './statistics.ts';

const KIB_PER_MIB = 1_024;

interface Seen {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  readonly residentMiB: number;
}

function seen(pid: number): Seen | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const field = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1];
    const residentMiB = Number(field('VmRSS') ?? 0) / KIB_PER_MIB;
    return { pid, parent: Number(field('PPid')), name: field('Name') ?? '', residentMiB };
  } catch {
    // It ended between listing and reading.
    return undefined;
  }
}

/** MiB by program name. The dev server is a child of its host, though in a session of its own. */
export function residentTree(root: number): Record<string, number> {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => seen(Number(name)))
    .filter((one) => one !== undefined);
  const inside = new Set([root]);
  for (let grown = true; grown;) {
    const before = inside.size;
    for (const { pid, parent } of all) if (inside.has(parent)) inside.add(pid);
    grown = inside.size > before;
  }
  const byName: Record<string, number> = {};
  for (const { pid, name, residentMiB } of all) {
    if (inside.has(pid)) byName[name] = rounded((byName[name] ?? 0) + residentMiB, 1);
  }
  return byName;
}
