const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const;

/** Decimal units: 64.6 GB is 64.6 × 10^9 bytes. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // A value that would be rounded to 1000 is 1.00 of the next unit.
  while (value >= (unit === 0 ? 1000 : 999.95) && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${UNITS[unit]}`;
}
