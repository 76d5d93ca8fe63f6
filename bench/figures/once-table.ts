/**
 * A measurement that `npm run reproduce` does not repeat: the processor is not at hand, the ways that were compared are not kept, or the
 * program writes no file. Its figures were copied by hand.
 */
export interface OnceResult {
  readonly about: string;
  readonly date: string;
  readonly machine: string;
  /** What was run. */
  readonly command: string;
  /** Why `npm run reproduce` does not measure it. */
  readonly notAgain: string;
  readonly columns: readonly OnceColumn[];
  /** Null: not measured. Two numbers are written as the column says. */
  readonly rows: readonly (readonly OnceCell[])[];
  /** Further figures of sentences. */
  readonly values?: Readonly<Record<string, number>>;
}

interface OnceColumn {
  readonly name: string;
  /** Digits behind the point. Default: 0. */
  readonly digits?: number;
  /** The most digits behind the point, if fewer are written where they are 0. Default: `digits`. */
  readonly mostDigits?: number;
  readonly unit?: string;
  /** How two numbers are written. `range`: 2.5 to 2.6; `best`: median and in brackets the best run. */
  readonly pair?: 'range' | 'best';
}

type OnceCell = string | number | null | readonly [number, number];

export const onceTable: (result: OnceResult) => string[][] = ({ columns, rows }) => [
  columns.map(({ name }) => name),
  ...rows.map((row) => row.map((cell, i) => cellText(cell, columns[i]!))),
];

function cellText(cell: OnceCell, { digits = 0, mostDigits = digits, unit, pair }: OnceColumn): string {
  if (cell === null) return '';
  if (typeof cell === 'string') return cell;
  const text = (value: number): string =>
    value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: mostDigits });
  const numbers = typeof cell === 'number' ? [cell] : cell;
  const shown =
    pair === 'best' && numbers.length === 2
      ? `${text(numbers[0]!)} (${text(numbers[1]!)})`
      : numbers.map(text).join(' to ');
  return unit === undefined ? shown : `${shown} ${unit}`;
}
