// Where a request thinks it is, and absolute URLs in answers (rest-endpoints.md): by the configured public URL, else by
// the request's own Host header, or by what a trusted proxy says of it.
import type { Request } from 'express';

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

export function statusUrlOf(baseUrl: string, runId: string): string {
  return `${baseUrl}/v1/runs/${encodeURIComponent(runId)}`;
}

export function eventsUrlOf(baseUrl: string, runId: string): string {
  return `${statusUrlOf(baseUrl, runId)}/events`;
}
