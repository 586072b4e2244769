// Temporal's test server in Java, out of Maven Central: in memory, without visibility and without namespaces of its own
// (spec/05 §7). Where nothing else can be had it lets a host be tried; tests of workflow code skip time with it.
import { chmod, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findOnPath, isExecutable, runProgram } from '../../../system/programs.ts';
import {
  againIfPassing,
  fetchFault,
  inFreshFolder,
  NoWay,
  type Found,
  type ProgramOptions,
} from './steps.ts';

const SERVER_VERSION = '1.38.0';
const LOGGING_VERSION = '2.0.17';
const FETCH_LIMIT_MS = 5 * 60_000;
/** Jars that the server has with its dependencies; fewer means that an earlier fetch was cut. */
const LEAST_JARS = 30;

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>openwop</groupId><artifactId>test-server</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>io.temporal</groupId><artifactId>temporal-test-server</artifactId><version>${SERVER_VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>${LOGGING_VERSION}</version></dependency>
  </dependencies>
</project>
`;

/** Takes the port as its only argument. Throws NoWay. */
export async function byJava(options: ProgramOptions): Promise<Found> {
  const { cacheDir, env, report } = options;
  if ((await findOnPath('java', env.PATH)) === undefined) throw new NoWay('no `java` on PATH');
  const folder = join(cacheDir, `test-server-${SERVER_VERSION}`);
  const path = join(folder, 'server.sh');
  const what = `Java's test server, version ${SERVER_VERSION}`;
  if (await isWhole(folder)) return { kind: 'test', path, what: `using ${what}` };
  const maven = await findOnPath('mvn', env.PATH);
  if (maven === undefined) throw new NoWay("no `mvn` on PATH to fetch Java's test server with");
  report("Temporal: fetching Java's test server, once (40 MB)");
  await againIfPassing(options.signal, () => fetchJars(options, maven, folder));
  return { kind: 'test', path, what: `fetched ${what}` };
}

/** Into a folder of its own first: another process may do the same, and a cut fetch must not stay. */
function fetchJars(
  { cacheDir, env, signal }: ProgramOptions,
  maven: string,
  folder: string,
): Promise<void> {
  return inFreshFolder(cacheDir, 'fetch', async (fresh) => {
    await writeFile(join(fresh, 'pom.xml'), POM);
    const goal = ['-q', '-B', 'dependency:copy-dependencies', '-DincludeScope=runtime'];
    const args = [...goal, `-DoutputDirectory=${join(fresh, 'lib')}`];
    await runProgram(maven, args, { env, cwd: fresh, limitMs: FETCH_LIMIT_MS, signal }).catch(
      (error: unknown) => {
        throw fetchFault('Maven', error);
      },
    );
    // Java is told where its jars are, wherever the folder is moved to.
    const start = 'exec java -Xmx512m -XX:TieredStopAtLevel=1 -cp "$(dirname "$0")/lib/*"';
    const wrapper = join(fresh, 'server.sh');
    await writeFile(wrapper, `#!/bin/sh\n${start} io.temporal.testserver.TestServer "$@"\n`);
    await chmod(wrapper, 0o755);
    if (!(await isWhole(fresh))) throw new NoWay('Maven gave too few jars');
    await rename(fresh, folder).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
      // Another process was quicker, or what stands there was cut: a whole one stays.
      if (await isWhole(folder)) return;
      await rm(folder, { recursive: true, force: true });
      await rename(fresh, folder);
    });
  });
}

async function isWhole(folder: string): Promise<boolean> {
  const jars = await readdir(join(folder, 'lib')).catch(() => [] as string[]);
  return jars.length >= LEAST_JARS && (await isExecutable(join(folder, 'server.sh')));
}
