// Reading request bodies: JSON of bounded size and depth, and no key that could reach a prototype (architecture §10).
// Bodies are read after authentication and before any port is called.
import express, { type Request, type Response } from 'express';
import { HostError, invalid } from '../rules/errors.ts';
import type { JsonValue } from '../rules/json.ts';
import { readJson } from '../rules/json-text.ts';
import { REQUEST_BODY_BYTES } from '../rules/limits.ts';

/** Deepest nesting of a request body. */
const BODY_DEPTH = 64;
/** Largest form that a page may send, in bytes: a run's inputs at their limit, each byte as `%xx`, and their names. */
const FORM_BYTES = 512 * 1024;
/** Fields of such a form. */
const FORM_FIELDS = 2_000;

/** Bytes that are no text would be read as replacement characters: another value. A byte order mark is none of the text. */
function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw invalid('', 'the body is not UTF-8');
  }
}

/** The same of the bytes that stand as `%xx`. */
function mustBeEscapedText(form: string): void {
  try {
    decodeURIComponent(form);
  } catch (error) {
    if (error instanceof URIError) throw invalid('', 'the form is not UTF-8');
    throw error;
  }
}

/** What is said to be too large is refused unread: the parser would read all of it first. */
function read(limit: number, request: Request, response: Response): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > limit)
    throw new HostError('payload_too_large', { limit });
  if (/^100-continue$/i.test(request.headers.expect ?? '')) response.writeContinue();
  const parser = express.raw({ limit, inflate: false, type: () => true });
  return new Promise((resolve, reject) => {
    parser(request, response, (error?: unknown) => {
      if (error) reject(error instanceof Error ? error : new Error('the body could not be read'));
      else resolve(request.body as Buffer);
    });
  });
}

function hasBody(request: Request): boolean {
  return (
    request.headers['transfer-encoding'] !== undefined ||
    Number(request.headers['content-length'] ?? 0) > 0
  );
}

function mediaType(request: Request): string {
  return (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

function charset(request: Request): string {
  const named = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(request.headers['content-type'] ?? '');
  return named?.[1]?.toLowerCase().replace(/^utf8$/, 'utf-8') ?? 'utf-8';
}

/** The JSON body, or undefined where there is none. Throws unsupported_media_type, payload_too_large, validation_error. */
export async function readJsonBody(
  request: Request,
  response: Response,
): Promise<JsonValue | undefined> {
  if (!hasBody(request)) return undefined;
  // JSON between systems is UTF-8 (RFC 8259 §8.1).
  if (mediaType(request) !== 'application/json' || charset(request) !== 'utf-8')
    throw new HostError('unsupported_media_type', { reason: 'the body must be JSON in UTF-8' });
  const bytes = await read(REQUEST_BODY_BYTES, request, response);
  if (bytes.length === 0) return undefined;
  const body = readJson(textOf(bytes), BODY_DEPTH);
  if (!body.ok)
    throw invalid(body.fault.pointer, body.isJson ? body.fault.message : 'the body is not JSON');
  guardJson(body.value);
  return body.value;
}

/**
 * A form of a page, each field once. What is larger than `maxBytes` is refused, unread where its length is sent; so is a field
 * that comes twice: one that is lost would be another word.
 */
export async function readForm(
  request: Request,
  response: Response,
  maxBytes = FORM_BYTES,
): Promise<Readonly<Record<string, string>>> {
  if (mediaType(request) !== 'application/x-www-form-urlencoded' || charset(request) !== 'utf-8')
    throw new HostError('unsupported_media_type', { reason: 'the body must be a form in UTF-8' });
  const sent = hasBody(request) ? textOf(await read(maxBytes, request, response)) : '';
  mustBeEscapedText(sent);
  const fields = [...new URLSearchParams(sent)];
  if (fields.length > FORM_FIELDS)
    throw new HostError('payload_too_large', { limit: FORM_FIELDS, reason: 'too many fields' });
  const form = Object.assign(Object.create(null) as object, Object.fromEntries(fields));
  if (Object.keys(form).length < fields.length)
    throw invalid('', 'a field of the form is repeated');
  return form;
}

/**
 * Throws validation_error for what no JSON of a client may be. Iterative on purpose: a recursive walk would overflow on
 * what it is there to refuse.
 */
export function guardJson(value: JsonValue): void {
  const open: { value: JsonValue; depth: number }[] = [{ value, depth: 0 }];
  for (let item = open.pop(); item; item = open.pop()) {
    const { value: current, depth } = item;
    if (typeof current !== 'object' || current === null) continue;
    if (depth >= BODY_DEPTH) throw invalid('', `nested deeper than ${BODY_DEPTH} levels`);
    if (!Array.isArray(current)) guardKeys(current);
    for (const child of Object.values<JsonValue>(current)) {
      open.push({ value: child, depth: depth + 1 });
    }
  }
}

function guardKeys(value: { [key: string]: JsonValue }): void {
  const inner = Object.hasOwn(value, 'constructor') ? value.constructor : undefined;
  if (typeof inner === 'object' && inner !== null && Object.hasOwn(inner, 'prototype')) {
    throw invalid('constructor', 'this key is not accepted');
  }
}
