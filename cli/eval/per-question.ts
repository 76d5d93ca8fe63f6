import type { EvalContext } from './eval-report.ts';
import type { MeasuredSystem } from '../../evaluation/systems/measured-system.ts';

/**
 * The lines of `--per-question`, with line ends: for each system and question `{"id", "question"?, "system"?, "metrics"}`. `question` is the
 * question's id where it has several trajectories; `system` is there with several systems.
 */
export function* perQuestionLines(
  measured: readonly MeasuredSystem[],
  { questionOf }: EvalContext,
): Generator<string, void> {
  for (const { system, evaluation } of measured) {
    for (const [id, metrics] of evaluation.perQuery) {
      const question = questionOf(id);
      yield `${JSON.stringify({
        id,
        ...(question === id ? {} : { question }),
        ...(measured.length === 1 ? {} : { system: system.name }),
        metrics,
      })}\n`;
    }
  }
}
