// Which confidence threshold holds, and what is below it (RFC 0002 §F).
import { expect, test } from 'vitest';
import { effectiveThreshold, isBelowThreshold } from '../../src/rules/confidence.ts';

test.each<[string, unknown, number | undefined, number]>([
  ['the run before the agent', 0.9, 0.2, 0.9],
  ['a run that says 0', 0, 0.9, 0],
  ['a run that says 1', 1, undefined, 1],
  ['the agent without the run', undefined, 0.2, 0.2],
  ['an agent that says 0', undefined, 0, 0],
  ['0.7 without both', undefined, undefined, 0.7],
  ['the agent when the run says no number', '0.9', 0.4, 0.4],
  ['the agent when the run is out of range', 1.1, 0.4, 0.4],
  ['the agent when the run is negative', -0.1, 0.4, 0.4],
  ['the agent when the run is not finite', Number.NaN, 0.4, 0.4],
])('RFC 0002 §F %s', (_, perRun, perAgent, expected) => {
  expect(effectiveThreshold(perRun, perAgent)).toBe(expected);
});

test.each<[string, number | undefined, number, boolean]>([
  ['strictly below escalates', 0.699, 0.7, true],
  // [I40]
  ['equal goes on', 0.7, 0.7, false],
  ['above goes on', 0.71, 0.7, false],
  ['absent is no signal', undefined, 1, false],
  ['NaN is no signal', Number.NaN, 1, false],
  ['minus infinity is no signal', Number.NEGATIVE_INFINITY, 1, false],
  ['nothing is below 0', 0, 0, false],
])('RFC 0002 §F %s', (_, confidence, threshold, expected) => {
  expect(isBelowThreshold(confidence, threshold)).toBe(expected);
});
