// Absolute URLs in answers (spec/01 §2.3): from the configured public URL, else from the request's own Host header.
import type { Request } from 'express';

export function baseUrlOf(request: Request, publicUrl: string | undefined): string {
  return publicUrl ?? `${request.protocol}://${request.headers.host ?? 'localhost'}`;
}

export function statusUrlOf(baseUrl: string, runId: string): string {
  return `${baseUrl}/v1/runs/${encodeURIComponent(runId)}`;
}

export function eventsUrlOf(baseUrl: string, runId: string): string {
  return `${statusUrlOf(baseUrl, runId)}/events`;
}
