// Where a request thinks it is, and absolute URLs in answers (rest-endpoints.md): by the configured public URL, else by
// the request's own Host header, or by what a trusted proxy says of it.
import type { Request } from 'express';
import type { Input } from './route.ts';

/** As the client addressed it: `X-Forwarded-Host` counts from a trusted proxy (Express's `trust proxy`). */
export function addressedHost(request: Request): string | undefined {
  // Undefined without a Host header, which the types of Express do not tell.
  return request.host;
}

/** Whether the client's own connection is TLS, here or at the proxy. */
export function isSecure(request: Request, publicUrl: string | undefined): boolean {
  return request.secure || (publicUrl?.startsWith('https:') ?? false);
}

export function baseUrlOf(request: Request, publicUrl: string | undefined): string {
  const scheme = request.secure ? 'https' : 'http';
  return publicUrl ?? `${scheme}://${addressedHost(request) ?? 'localhost'}`;
}

/** A run of the caller, as the answer names it. */
export function shownRunId(
  { major, caller }: Pick<Input, 'major' | 'caller'>,
  runId: string,
): string {
  return major.ids.bind('run', runId, caller.tenant);
}

/** Addresses of a run of the caller, in the major that was asked for. */
export function runUrls(
  input: Pick<Input, 'major' | 'caller' | 'baseUrl'>,
  runId: string,
): { readonly statusUrl: string; readonly eventsUrl: string } {
  const { ids, prefix } = input.major;
  const statusUrl = `${input.baseUrl}${prefix}/runs/${ids.project(shownRunId(input, runId))}`;
  return { statusUrl, eventsUrl: `${statusUrl}/events` };
}
