// Confidence and escalation (RFC 0002 §F): which threshold holds, and whether a decision is below it.
import { DEFAULT_CONFIDENCE_THRESHOLD } from './limits.ts';

/** Per-run over per-agent over 0.7. Values outside 0..1 are refused before a run starts. */
export function effectiveThreshold(perRun: unknown, perAgent: number | undefined): number {
  if (typeof perRun === 'number' && perRun >= 0 && perRun <= 1) return perRun;
  return perAgent ?? DEFAULT_CONFIDENCE_THRESHOLD;
}

/** Strictly below escalates; equal goes on; absent or not finite is no signal. */
export function isBelowThreshold(confidence: number | undefined, threshold: number): boolean {
  return confidence !== undefined && Number.isFinite(confidence) && confidence < threshold;
}
