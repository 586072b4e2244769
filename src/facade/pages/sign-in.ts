// Signing in and out (architecture §10): by the key in a form, or by a one-time link. Wrong keys rest, are counted before
// they do, and all get the same words; what was typed is in no log, error, address or page.
import type { Request, Response, Router } from 'express';
import { HostError } from '../../rules/errors.ts';
import { renderSignInLinkPage, renderSignInPage, type SignInModel } from '../../pages/index.ts';
import { nowMs, rest } from '../../system/time.ts';
import { duration } from '../../words/duration.js';
import { keyCheck } from '../auth.ts';
import { readForm } from '../body.ts';
import { DEFAULT_CALLER } from '../deps.ts';
import { queryText } from '../parameters.ts';
import {
  HOME,
  ownPath,
  page,
  SIGN_IN,
  signedIn,
  type PageDeps,
  type SignedInCall,
} from './page.ts';
import { WRONG_IN_FORM } from '../wrong-keys.ts';

/** A wrong key is answered after this, in ms. */
const WRONG_KEY_REST_MS = 1_000;

/** Largest form that a stranger may send, in bytes: a key and an address, each byte as `%xx`. */
const FORM_BYTES = 16 * 1024;

const WRONG_KEY = 'This is not the key of this host.';
const SIGNED_OUT = 'You are signed out.';

export function mountSignIn(router: Router, deps: PageDeps): void {
  const isKey = keyCheck(deps.config.apiKey);
  router.get(SIGN_IN, page(deps, showSignIn));
  router.post(
    SIGN_IN,
    page(deps, async (_deps, request, response) => {
      if (!deps.sessions.isOwnOrigin(request)) throw new HostError('forbidden');
      const link = queryText(request, 'link');
      if (link === undefined) await takeKey(deps, isKey, { request, response });
      else await consumeLink(deps, link, response);
    }),
  );
  router.post('/pages/sign-out', page(deps, signedIn(signOut)));
}

async function showSignIn(deps: PageDeps, request: Request, response: Response): Promise<void> {
  if (await deps.sessions.findHost(request)) {
    response.redirect(303, HOME);
    return;
  }
  const link = queryText(request, 'link');
  if (link !== undefined) {
    const action = `${SIGN_IN}?link=${encodeURIComponent(link)}`;
    response.status(200).type('html').send(renderSignInLinkPage({ action }));
    return;
  }
  const signedOut = queryText(request, 'notice') === 'signed-out';
  const notice = signedOut ? ({ kind: 'info', text: SIGNED_OUT } as const) : undefined;
  sendForm(response, 200, { to: HOME, notice });
}

async function consumeLink(
  { sessions }: PageDeps,
  link: string,
  response: Response,
): Promise<void> {
  if (!(await sessions.openHost(link, response))) throw new HostError('link_expired');
  response.redirect(303, HOME);
}

async function takeKey(
  { sessions, wrongKeys }: PageDeps,
  isKey: (given: string) => boolean,
  { request, response }: { request: Request; response: Response },
): Promise<void> {
  const form = await readForm(request, response, FORM_BYTES);
  const to = ownPath(form.to ?? '');
  // People paste a key with what stands around it; no key has a blank.
  if (isKey((form.key ?? '').trim())) {
    await sessions.signIn(DEFAULT_CALLER.tenant, response);
    response.redirect(303, to);
    return;
  }
  const waitMs = wrongKeys.count(request.ip, WRONG_IN_FORM, nowMs());
  if (waitMs !== undefined) {
    response.set('Retry-After', String(Math.ceil(waitMs / 1000)));
    const text = `Too many wrong keys. Wait ${duration(waitMs)} before the next guess; the right key is taken at any time.`;
    sendForm(response, 429, { to, notice: { kind: 'error', text } });
    return;
  }
  await rest(WRONG_KEY_REST_MS);
  sendForm(response, 401, { to, notice: { kind: 'error', text: WRONG_KEY } });
}

function sendForm(response: Response, status: number, model: SignInModel): void {
  response.status(status).type('html').send(renderSignInPage(model));
}

async function signOut({ sessions }: PageDeps, { request, response }: SignedInCall): Promise<void> {
  await sessions.signOut(request, response);
  response.redirect(303, `${SIGN_IN}?notice=signed-out`);
}
