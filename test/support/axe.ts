// What axe finds on a page in a real browser: the findings that keep somebody out, each with where it is.
import axe from 'axe-core';
import type { Page } from 'playwright-core';

interface Finding {
  readonly id: string;
  readonly impact: string | null;
  readonly help: string;
  readonly nodes: readonly {
    readonly target: readonly string[];
    readonly failureSummary: string;
  }[];
}

/** Findings of these impacts fail a test. */
const GRAVE: ReadonlySet<string | null> = new Set(['serious', 'critical']);

/**
 * Serious and critical findings as the page stands, one line each; none is []. Needs JavaScript in the page. axe is put
 * in by the browser itself, which the page's own policy does not hinder.
 */
export async function graveFindings(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const violations = await page.evaluate<readonly Finding[]>(
    'axe.run(document).then((result) => result.violations)',
  );
  return violations
    .filter(({ impact }) => GRAVE.has(impact))
    .flatMap(({ id, help, nodes }) =>
      nodes.map(
        ({ target, failureSummary }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary}`,
      ),
    );
}
