/** How the table and the page write numbers. */

/** 0.734 → 73.4 %; null → –. */
export function percent(share: number | null): string {
  return share === null ? '–' : `${(100 * share).toFixed(1)} %`;
}

/** A count with its share of a whole: 12 (3.4 %). */
export function countOf(count: number | null, whole: number): string {
  if (count === null) return '–';
  return whole === 0 ? String(count) : `${count.toLocaleString('en-US')} (${percent(count / whole)})`;
}
