#include "profile/module/module_section.h"

#include <algorithm>

namespace shadowprof::profile {

void MeasuredCodec::write(model::JsonOutput& out, const Measured& values) {
    out.open_object();
    out.key("count").number(values.count);
    out.key("sum").number(values.sum);
    out.key("least").number(values.least);
    out.key("most").number(values.most);
    out.key("mean").rounded(values.mean());
    out.close_object();
}

void MeasuredCodec::read(model::JsonCursor& in, Measured& values) {
    in.object(model::required("count", [&] { values.count = in.number(); }),
              model::required("sum", [&] { values.sum = in.number(); }),
              model::required("least", [&] { values.least = in.number(); }),
              model::required("most", [&] { values.most = in.number(); }),
              model::optional("mean", [&] { in.real(); }));
    if (values.count == 0 || values.least > values.most)
        in.fail("values that contradict themselves");
}

std::string MeasuredCodec::schema() {
    model::ObjectSchema object;
    for (const auto* key : {"count", "sum", "least", "most"})
        object.add(key, model::schema_ref("count"), true);
    object.add("mean", model::Json<double>::schema(), false);
    return object.take();
}

void merge_measured(Measured& into, const Measured& other) {
    if (other.count == 0) return;
    into.least = into.count == 0 ? other.least : std::min(into.least, other.least);
    into.most = std::max(into.most, other.most);
    model::add_up(into.count, other.count);
    model::add_up(into.sum, other.sum);
}

}  // namespace shadowprof::profile
