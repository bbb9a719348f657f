"""Models in the form that PyTorch's exporter writes since version 2.9."""

def recent_form(models, files):
    """Rewrites models (recent_form.py), as files of the folder of their names.

    Args:
      models: by the name of each, NAME-OPSET, that of the model it is rewritten from.
      files: those of a model, from its folder on: the model, inputs, expected outputs.
    """
    for name, source in models.items():
        native.genrule(
            name = name + "_files",
            testonly = True,
            srcs = ["recent_form.py"] + [source + "/" + file for file in files],
            outs = [name + "/" + file for file in files + ["1/model.onnx.data"]],
            cmd = "/usr/bin/python3 $(location recent_form.py) --out=$(RULEDIR)/" + name +
                  " --opset=" + name.split("-")[1] +
                  " --source=$$(dirname $$(dirname $(location " + source + "/1/model.onnx)))",
            local = True,
            tags = [
                "manual",
                "no-cache",
            ],
        )
