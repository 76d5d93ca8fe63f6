/** Numbers as a person reads them. */

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const;

/** Decimal units: 64.6 GB is 64.6 × 10^9 bytes. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // What would be rounded to 1000 of a unit is 1 of the next.
  while (value >= (unit === 0 ? 1000 : 999.95) && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${UNITS[unit]}`;
}

/**
 * A text that came from elsewhere (a model's card, a path, a server's answer) without what would steer the terminal.
 * Lines and tabs stay.
 */
export function printable(text: string): string {
  const shown = (char: string): string => `\\u{${char.codePointAt(0)!.toString(16)}}`;
  return text.replace(/(?![\n\t])[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, shown);
}

/** 21015324 → 21,015,324 */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** 1, 'passage' → 1 passage; 2,500, 'passage' → 2,500 passages. Nouns whose plural is formed with s alone. */
export function formatNumberOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${ms < 9.95 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
