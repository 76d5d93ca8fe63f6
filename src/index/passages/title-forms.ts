/** A title without and with the quotes of the published corpora. */
export function titleForms(title: string): readonly string[] {
  return [title, `"${title}"`];
}
