import type { CommandContext } from '../program/command.ts';
import type { ITERATE_OPTIONS } from './iterate-options.ts';
import type { IterationMeasurement } from '../../training/iteration/measure-iteration.ts';

type Context = CommandContext<typeof ITERATE_OPTIONS>;

/** What the steps of an iteration are done with. */
export interface WorkContext extends Pick<Context, 'options' | 'signal' | 'out' | 'note'> {
  /** Absolute. */
  readonly checkpoint: string;
  readonly measurement: IterationMeasurement;
}
