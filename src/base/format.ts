export { formatBytes } from './system/format-bytes.ts';

/**
 * Escapes the control characters, except newlines and tabs, of an untrusted text (a model card, a path, a server's response): they
 * could control the terminal.
 */
export function printable(text: string): string {
  const shown = (char: string): string => `\\u{${char.codePointAt(0)!.toString(16)}}`;
  return text.replace(/(?![\n\t])[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, shown);
}

/** 21015324 → 21,015,324 */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** 1, 'passage' → 1 passage; 2,500, 'passage' → 2,500 passages. For nouns whose plural ends in s. */
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
