// The few numbers that the bench states: medians of rounds, percentiles of samples.

/** The p-th percentile (0..1) by nearest rank; NaN of nothing. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(p * sorted.length) - 1))] ?? NaN;
}

/** The mean of the two middle values when their number is even; NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const high = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? high : ((sorted[middle - 1] ?? NaN) + high) / 2;
}

/** Ends in `Ms`: measured times, in ms. */
export interface Latency {
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly samples: number;
}

export function latencyOf(timesMs: readonly number[], digits = 1): Latency {
  return {
    p50Ms: rounded(percentile(timesMs, 0.5), digits),
    p95Ms: rounded(percentile(timesMs, 0.95), digits),
    samples: timesMs.length,
  };
}

export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

/** ms epoch with fractions, comparable between processes of one machine. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Of the line through the points that least squares choose, and by how much the points miss it (standard deviation). */
export function trendOf(points: readonly (readonly [x: number, y: number])[]): {
  readonly slope: number;
  readonly residual: number;
} {
  const mean = (values: readonly number[]) =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const [midX, midY] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))];
  const spread = mean(points.map(([x]) => (x - midX) ** 2));
  const slope = mean(points.map(([x, y]) => (x - midX) * (y - midY))) / spread;
  const misses = points.map(([x, y]) => (y - midY - slope * (x - midX)) ** 2);
  return { slope, residual: Math.sqrt(mean(misses)) };
}
