import { elementsAt, numberAt, type PathScope, valueAt } from '../figures/result-path.ts';
import { filled } from '../figures/table-text.ts';

/** How far a figure may be from the recorded one: not at all, by a difference, or by a factor in either direction. */
export type Tolerance = '=' | `± ${number}` | `× ${number}`;

/** Figures that a new result has to reach: of each element of a list, or of the whole result. */
export interface Comparison {
  /** The path of the list (result-path.ts), or '' for the result. */
  readonly each: string;
  /** Template of the element's name, by which it is found in the new result. */
  readonly name: string;
  /** Path or quotient → tolerance. A figure that the recorded result lacks is not compared. */
  readonly within: Readonly<Record<string, Tolerance>>;
}

export interface ComparedFigure {
  readonly name: string;
  readonly tolerance: Tolerance;
  readonly recorded: unknown;
  /** Undefined if the new result has no such figure, as where a baseline is not installed. */
  readonly found: unknown;
  readonly within: boolean;
}

export function comparedResults(
  comparisons: readonly Comparison[],
  recorded: unknown,
  found: unknown,
): ComparedFigure[] {
  return comparisons.flatMap(({ each, name, within }) => {
    const scopes = (result: unknown): PathScope[] =>
      elementsAt(each, { line: result, result }).map((line) => ({ line, result }));
    const byName = new Map(scopes(found).map((scope) => [filled(name, scope), scope]));
    return scopes(recorded).flatMap((scope) => {
      const element = filled(name, scope);
      const other = byName.get(element);
      return Object.entries(within).flatMap(([path, tolerance]) => {
        const before = figureAt(path, scope);
        if (before === undefined || before === null) return [];
        const now = other === undefined ? undefined : figureAt(path, other);
        return {
          name: `${element}: ${path}`,
          tolerance,
          recorded: before,
          found: now,
          within: isWithin(now, before, tolerance),
        };
      });
    });
  });
}

const figureAt = (path: string, scope: PathScope): unknown => numberAt(path, scope) ?? valueAt(path, scope);

function isWithin(found: unknown, recorded: unknown, tolerance: Tolerance): boolean {
  if (tolerance === '=' || recorded === 0) return found === recorded;
  if (typeof found !== 'number' || typeof recorded !== 'number') return false;
  const [sign, limit] = [tolerance[0], Number(tolerance.slice(2))];
  const factor = found / recorded;
  return sign === '±' ? Math.abs(found - recorded) <= limit + 1e-12 : factor <= limit && factor >= 1 / limit;
}
