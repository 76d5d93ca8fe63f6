import type { MachineFacts } from './environment.ts';

/** In decimal gigabytes: 15.4 GB is 15.4 × 10^9 bytes. */
export function formatGigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(bytes < 1e8 ? 4 : 2)} GB`;
}

export function formatMs(ms: number): string {
  return ms < 10 ? ms.toFixed(2) : ms < 100 ? ms.toFixed(1) : ms.toFixed(0);
}

/** The lines of a Markdown table, aligned so that it also reads well on a terminal. The second column is text. */
export function markdownTable(header: readonly string[], lines: readonly (readonly string[])[]): string[] {
  const widths = header.map((name, i) => Math.max(name.length, ...lines.map((line) => line[i]!.length)));
  const row = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => (i === 1 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join(' | ')} |`;
  const rule = widths.map((width, i) => (i === 1 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [row(header), row(rule), ...lines.map(row)];
}

/** One line with the machine, the versions and the date. */
export function machineLine(facts: MachineFacts, isa?: string): string {
  const { processor, cores, memoryBytes, loadBefore, node, platform, engines, date } = facts;
  return `${date.slice(0, 10)}, ${processor}, ${cores} cores, ${isa === undefined ? '' : `${isa}, `}${formatGigabytes(memoryBytes)}, load before ${loadBefore.toFixed(1)}, ${platform}, Node.js ${node}; ${[...new Set(engines)].join(', ')}`;
}
