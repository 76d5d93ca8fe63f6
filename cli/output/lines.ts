/** The lines of a report. A part that does not apply is false: `lines(title, failed > 0 && `${failed} failed`)`. */
export function lines(...parts: readonly (string | false)[]): string[] {
  return parts.filter((part) => part !== false);
}
