// Chromium for tests of the pages: the system's own, or named as a skipped twin.
import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

const PLACES = [
  process.env.OPENWOP_TEST_CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

/** Path of the browser, or undefined: then the suites that need it are skipped by name. */
export const chromiumPath = PLACES.find((path) => path !== undefined && existsSync(path));

if (
  chromiumPath === undefined &&
  process.env.OPENWOP_TEST_REQUIRE?.split(',').includes('chromium')
) {
  throw new Error('OPENWOP_TEST_REQUIRE names chromium, and there is none.');
}

/** Starts the browser without sandbox (containers run tests as root) and without background traffic. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}
