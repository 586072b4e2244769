// The page of the worker's builds (docs/upgrades.md).
import { expect, it } from 'vitest';
import { renderDeploymentsPage } from '../../src/pages/index.ts';

const build = {
  ...{ buildId: 'one', state: 'draining', sinceMs: 0, share: 0, openRuns: 2, heldRuns: 2 },
  hasWorker: true,
};

it('shows what each build holds', () => {
  const html = renderDeploymentsPage({ builds: [build], runsWithoutWorker: 0 });
  expect(html).toMatch(
    /<code>one<\/code>.*<td>draining<\/td>.*<td>2<\/td><td>2<\/td><td>yes<\/td>/,
  );
  expect(html).not.toContain('role="alert"');
});

it('says which runs wait for a worker that is not there', () => {
  const builds = [{ ...build, buildId: '<b>', hasWorker: false }];
  const html = renderDeploymentsPage({ builds, runsWithoutWorker: 2 });
  expect(html).toMatch(/role="alert">2 runs wait for a worker of their build/);
  expect(html).toContain('<code>&lt;b&gt;</code>');
  expect(html).toContain('none: its runs wait');
});

it('says where no worker names a build', () => {
  const html = renderDeploymentsPage({ builds: [], runsWithoutWorker: 0 });
  expect(html).toContain('No worker names a build');
  expect(html).not.toContain('<table');
});
