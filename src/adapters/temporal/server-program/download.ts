// Temporal's CLI from Temporal's download service, the one that its SDKs use.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '../../../system/programs.ts';
import {
  againIfPassing,
  cachedCli,
  CLI_VERSIONS,
  inFreshFolder,
  keep,
  NoWay,
  PassingFault,
  type Found,
  type ProgramOptions,
} from './steps.ts';

/** All tries together. */
const DOWNLOAD_LIMIT_MS = 20_000;
const UNPACK_LIMIT_MS = 20_000;
const DOWNLOAD_BYTES = 256 * 1024 * 1024;
const DOWNLOAD_SERVICE = 'https://temporal.download';
const [VERSION] = CLI_VERSIONS;
/** Faults of a connection that another try may not meet again. A name that is not known is an answer. */
const PASSING_CODES = new Set([
  'ECONNRESET',
  'ETIMEDOUT',
  'EPIPE',
  'EAI_AGAIN',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** Throws NoWay. */
export async function byDownload(options: ProgramOptions): Promise<Found> {
  if (options.downloadService === 'off') throw new NoWay('downloads are switched off');
  const limitMs = options.downloadLimitMs ?? DOWNLOAD_LIMIT_MS;
  const limit = AbortSignal.timeout(limitMs);
  const signal = options.signal ? AbortSignal.any([limit, options.signal]) : limit;
  try {
    return await againIfPassing(signal, () => download(options, signal));
  } catch (error) {
    const why = limit.aborted ? `no answer in ${limitMs / 1000} s` : (error as Error).message;
    throw new NoWay(`the CLI ${VERSION} cannot be downloaded (${why})`, { cause: error });
  }
}

async function download(options: ProgramOptions, signal: AbortSignal): Promise<Found> {
  const { cacheDir, env } = options;
  const { archive, fileToExtract } = await fetchArchive(options, signal);
  return inFreshFolder(cacheDir, 'download', async (folder) => {
    await writeFile(join(folder, 'archive.tar.gz'), archive);
    const unpack = ['-xzf', join(folder, 'archive.tar.gz'), '-C', folder, '--', fileToExtract];
    // Beside the given PATH, which may be narrow: tar is a part of the system.
    const path = `${env.PATH ?? ''}:/usr/bin:/bin`;
    await runProgram('tar', unpack, { env: { PATH: path }, limitMs: UNPACK_LIMIT_MS, signal });
    const target = cachedCli(cacheDir, VERSION);
    const kept = await keep(join(folder, fileToExtract), target);
    return { kind: 'dev', path: kept.path, what: `downloaded the CLI, ${kept.version}` };
  });
}

async function fetchArchive(
  { downloadService }: ProgramOptions,
  signal: AbortSignal,
): Promise<{ archive: Buffer; fileToExtract: string }> {
  const service = downloadService ?? DOWNLOAD_SERVICE;
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const query = new URLSearchParams({ arch, platform: process.platform, format: 'tar.gz' });
  const info = await get(`${service}/cli/${VERSION}?${query.toString()}`, signal);
  const { archiveUrl, fileToExtract } = (await reading(info.json())) as {
    archiveUrl?: string;
    fileToExtract?: string;
  };
  if (!archiveUrl || !fileToExtract) throw new NoWay('the service names no archive');
  if (new URL(archiveUrl).protocol !== new URL(service).protocol)
    throw new NoWay('the archive is not served securely');
  const archive = await get(archiveUrl, signal);
  if (Number(archive.headers.get('content-length') ?? 0) > DOWNLOAD_BYTES)
    throw new NoWay('the archive is too large');
  return { archive: Buffer.from(await reading(archive.arrayBuffer())), fileToExtract };
}

async function get(url: string, signal: AbortSignal): Promise<Response> {
  const response = await reading(fetch(url, { signal }));
  if (response.ok) return response;
  await response.body?.cancel();
  const said = `the service answered ${response.status}`;
  throw response.status >= 500 || response.status === 429
    ? new PassingFault(said)
    : new NoWay(said);
}

async function reading<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const { message, cause } = error as Error;
    const { code, message: inner } = (cause ?? {}) as { code?: string; message?: string };
    const said = inner || message;
    throw code !== undefined && PASSING_CODES.has(code)
      ? new PassingFault(said, { cause: error })
      : new NoWay(said, { cause: error });
  }
}
