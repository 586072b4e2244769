// The time-skipping twin (design §7; spec/05 §7): Temporal's Java test server out of Maven Central, for workflow logic
// with long timers. Where Java or Maven is absent the reason is given, so that suites can name what they skipped.
import { execFile } from 'node:child_process';
import { access, chmod, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { CACHE_DIR } from './temporal.ts';

const SERVER_VERSION = '1.38.0';
const LOGGING_VERSION = '2.0.17';
const TOOL_LIMIT_MS = 20_000;
const DOWNLOAD_LIMIT_MS = 5 * 60_000;
/** Jars that the server has with its dependencies; fewer means that an earlier download was cut. */
const LEAST_JARS = 30;
/** `<name>,<name>`: twins that must be there; a missing one is an error instead of a skip. */
const REQUIRED = (process.env.OPENWOP_TEST_REQUIRE ?? '').split(',');

const run = promisify(execFile);

export type TimeSkippingServer =
  | { readonly available: true; readonly executable: string }
  | { readonly available: false; readonly reason: string };

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>openwop</groupId><artifactId>time-skipping</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>io.temporal</groupId><artifactId>temporal-test-server</artifactId><version>${SERVER_VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>${LOGGING_VERSION}</version></dependency>
  </dependencies>
</project>
`;

async function missingTool(): Promise<string | undefined> {
  for (const tool of ['java', 'mvn']) {
    const found = await run(tool, ['-version'], { timeout: TOOL_LIMIT_MS }).then(
      () => true,
      () => false,
    );
    if (!found) return `no ${tool} on PATH`;
  }
  return undefined;
}

/** Into a folder of its own first: another process may do the same, and a cut download must not stay. */
async function download(folder: string): Promise<void> {
  await mkdir(CACHE_DIR, { recursive: true });
  const fresh = await mkdtemp(join(CACHE_DIR, 'download-'));
  try {
    await writeFile(join(fresh, 'pom.xml'), POM);
    const goal = ['-q', '-B', 'dependency:copy-dependencies', '-DincludeScope=runtime'];
    await run('mvn', [...goal, `-DoutputDirectory=${join(fresh, 'lib')}`], {
      cwd: fresh,
      timeout: DOWNLOAD_LIMIT_MS,
    });
    const wrapper = join(fresh, 'server.sh');
    // The SDK's first argument is the port; Java is told where its jars are, wherever the folder is moved to.
    const start = 'exec java -Xmx256m -XX:TieredStopAtLevel=1 -cp "$(dirname "$0")/lib/*"';
    await writeFile(wrapper, `#!/bin/sh\n${start} io.temporal.testserver.TestServer "$@"\n`);
    await chmod(wrapper, 0o755);
    await rename(fresh, folder).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

async function isWhole(folder: string): Promise<boolean> {
  const jars = await readdir(join(folder, 'lib')).catch(() => []);
  return (
    jars.length >= LEAST_JARS &&
    (await access(join(folder, 'server.sh')).then(
      () => true,
      () => false,
    ))
  );
}

/**
 * The server's executable, downloaded once into the cache. `available: false` with the reason when it cannot be had,
 * unless OPENWOP_TEST_REQUIRE contains `java`: then it throws.
 */
export async function findTimeSkippingServer(): Promise<TimeSkippingServer> {
  const folder = join(CACHE_DIR, `time-skipping-${SERVER_VERSION}`);
  const executable = join(folder, 'server.sh');
  const reason = (await missingTool()) ?? (await obtain(folder));
  if (reason === undefined) return { available: true, executable };
  if (REQUIRED.includes('java'))
    throw new Error(`The time-skipping server is required, but: ${reason}`);
  return { available: false, reason };
}

async function obtain(folder: string): Promise<string | undefined> {
  if (await isWhole(folder)) return undefined;
  try {
    await download(folder);
    return (await isWhole(folder)) ? undefined : 'Maven gave too few jars';
  } catch (error) {
    return `Maven could not get the server: ${(error as Error).message.split('\n')[0]}`;
  }
}

/** A server of its own with its own clock, on a free port. The caller tears it down. */
export async function createTimeSkippingEnvironment(server: {
  executable: string;
}): Promise<TestWorkflowEnvironment> {
  return TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: 'existing-path', path: server.executable } },
  });
}
