// Temporal's test server in Java, out of Maven Central, behind a main of ours (dev-server/in-memory/): in memory, without visibility and without namespaces of its own
// (architecture §7). Where nothing else can be had it lets a host be tried; tests of workflow code skip time with it.
import { chmod, copyFile, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findOnPath, isExecutable, runProgram } from '../../../system/programs.ts';
import {
  againIfPassing,
  digestOf,
  fetchFault,
  inFreshFolder,
  NoWay,
  sourcesOf,
  type Found,
  type ProgramOptions,
} from './steps.ts';

const NAME = "Java's in-memory server";
const FETCH_LIMIT_MS = 5 * 60_000;
const COMPILE_LIMIT_MS = 60_000;
/** Jars that the server has with its dependencies; fewer means that an earlier fetch was cut. */
const LEAST_JARS = 30;
/** What it is made of, in the sources of the dev server. */
const MAIN = 'InMemoryServer';
const PARTS = ['pom.xml', `${MAIN}.java`] as const;

/** Takes the port as its only argument, and listens on 127.0.0.1 alone. Throws NoWay. */
export async function byJava(options: ProgramOptions): Promise<Found> {
  const { cacheDir, env, report } = options;
  const java = await findOnPath('java', env.PATH);
  if (java === undefined) throw new NoWay('no `java` on PATH');
  const sources = join(sourcesOf(options), 'in-memory');
  const digest = await digestOf(sources, PARTS).catch(() => {
    throw new NoWay(`the sources of ${NAME} are not here`);
  });
  const folder = join(cacheDir, `in-memory-server-${digest}`);
  const path = join(folder, 'server.sh');
  if (await isWhole(folder)) return { kind: 'test', path, what: `using ${NAME}` };
  const maven = await findOnPath('mvn', env.PATH);
  if (maven === undefined) throw new NoWay(`no \`mvn\` on PATH to fetch ${NAME} with`);
  report(`Temporal: fetching ${NAME}, once (40 MB)`);
  await againIfPassing(options.signal, () => make(options, { java, maven, sources, folder }));
  return { kind: 'test', path, what: `fetched ${NAME}` };
}

interface Making {
  readonly java: string;
  readonly maven: string;
  readonly sources: string;
  /** Where it is kept. */
  readonly folder: string;
}

/** In a folder of its own first: another process may do the same, and a cut fetch must not stay. */
function make(
  { cacheDir, env, signal }: ProgramOptions,
  { java, maven, sources, folder }: Making,
): Promise<void> {
  return inFreshFolder(cacheDir, 'fetch', async (fresh) => {
    // Maven looks for its own settings here and in each folder above, and takes the first.
    await mkdir(join(fresh, '.mvn'));
    for (const part of PARTS) await copyFile(join(sources, part), join(fresh, part));
    const lib = join(fresh, 'lib');
    const goal = ['-q', '-B', 'dependency:copy-dependencies', '-DincludeScope=runtime'];
    const fetching = { env, cwd: fresh, limitMs: FETCH_LIMIT_MS, signal };
    await runProgram(maven, [...goal, `-DoutputDirectory=${lib}`], fetching).catch(
      (error: unknown) => {
        throw fetchFault('Maven', error);
      },
    );
    const compiler = ['-cp', `${lib}/*`, 'org.eclipse.jdt.internal.compiler.batch.Main'];
    const jars = (await jarsIn(fresh)).map((jar) => join(lib, jar));
    if (jars.length < LEAST_JARS) throw new NoWay('Maven gave too few jars');
    const task = ['-8', '-cp', jars.join(':'), '-d', join(fresh, 'classes'), `${MAIN}.java`];
    const compiling = { env, cwd: fresh, limitMs: COMPILE_LIMIT_MS, signal };
    await runProgram(java, [...compiler, ...task], compiling).catch((error: unknown) => {
      throw new NoWay(`Java could not compile ${NAME}`, { cause: error });
    });
    // Java is told where its jars are, wherever the folder is moved to.
    const start = 'here=$(dirname "$0")\nexec java -Xmx512m -XX:TieredStopAtLevel=1';
    const wrapper = join(fresh, 'server.sh');
    await writeFile(wrapper, `#!/bin/sh\n${start} -cp "$here/classes:$here/lib/*" ${MAIN} "$@"\n`);
    await chmod(wrapper, 0o755);
    await rename(fresh, folder).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
      // Another process was quicker, or what stands there was cut: a whole one stays.
      if (await isWhole(folder)) return;
      await rm(folder, { recursive: true, force: true });
      await rename(fresh, folder);
    });
  });
}

async function jarsIn(folder: string): Promise<string[]> {
  return readdir(join(folder, 'lib')).catch(() => []);
}

async function isWhole(folder: string): Promise<boolean> {
  const jars = await jarsIn(folder);
  return jars.length >= LEAST_JARS && (await isExecutable(join(folder, 'server.sh')));
}
